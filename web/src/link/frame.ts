// Drawing at most once per animation frame, however much comes in between.

/** A hidden page gets no frames; it is brought up to date so often instead. */
const HIDDEN_MS = 500;

const due = new Set<() => void>();
let asked = false;

/** Does the work before the next frame is drawn; asked for twice, it is done once. */
export function atNextFrame(work: () => void): void {
  due.add(work);
  if (asked) return;
  asked = true;
  const hasFrames = typeof requestAnimationFrame === 'function' && !document.hidden;
  if (hasFrames) requestAnimationFrame(flush);
  else setTimeout(flush, typeof document === 'undefined' ? 0 : HIDDEN_MS);
}

function flush(): void {
  asked = false;
  const works = [...due];
  due.clear();
  for (const work of works) work();
}
