// The width of text on the screen.

/** An upper estimate of the width of a bold character in pixels, without a screen to measure on. */
const CHAR_PX = 9;

/** Returns the width of the widest text in the bold font of the page, in pixels. */
export function widestBold(texts: readonly string[]): number {
  const canvas = typeof document === 'undefined' ? null : document.createElement('canvas').getContext('2d');
  if (!canvas) return Math.max(0, ...texts.map((text) => text.length * CHAR_PX));
  const { fontFamily, fontSize } = getComputedStyle(document.body);
  canvas.font = `600 ${fontSize} ${fontFamily}`;
  let widest = 0;
  for (const text of texts) widest = Math.max(widest, canvas.measureText(text).width);
  return widest;
}
