// One member of a message, without reading the others: of a thousand ticks most are never shown. Messages are flat objects
// without blanks, as the service writes them; a quotation mark inside a text is escaped, so a name cannot stand in one.

/** The longest number, and something behind it. */
const NUMBER_MAX = 32;

/** The number under a name, which is given as it stands: `"seq":`. NaN where there is none. For drawing and ordering. */
export function peekNumber(body: string, name: string): number {
  const start = body.indexOf(name);
  return start < 0 ? NaN : Number.parseFloat(body.slice(start + name.length, start + name.length + NUMBER_MAX));
}

/** So many letters of the text under a name. */
export function peekText(body: string, name: string, length: number): string {
  const start = body.indexOf(name);
  const text = start + name.length + 1;
  return start < 0 ? '' : body.slice(text, text + length);
}
