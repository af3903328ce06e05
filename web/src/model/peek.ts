// Reads one member of a message without parsing the others, because most ticks are never shown. The
// service writes messages as flat objects without spaces. A quotation mark inside a text is
// escaped, so a text cannot contain a name.

/** Characters to read: above the length of the longest number. */
const NUMBER_MAX = 32;

/**
 * Returns the number of a name, which is given as in JSON: `"seq":`. NaN if it is missing. For
 * drawing and ordering.
 */
export function peekNumber(body: string, name: string): number {
  const start = body.indexOf(name);
  return start < 0 ? NaN : Number.parseFloat(body.slice(start + name.length, start + name.length + NUMBER_MAX));
}

/** Returns the first `length` characters of the text of a name. */
export function peekText(body: string, name: string, length: number): string {
  const start = body.indexOf(name);
  const text = start + name.length + 1;
  return start < 0 ? '' : body.slice(text, text + length);
}
