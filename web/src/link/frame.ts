// Drawing at most once per animation frame, however much comes in between.

/** A hidden page gets no frames; it is brought up to date so often instead. */
const HIDDEN_MS = 500;

const pending = new Set<() => void>();
let isScheduled = false;

/** Does the work before the next frame is drawn; asked for twice, it is done once. */
export function atNextFrame(work: () => void): void {
  pending.add(work);
  if (isScheduled) return;
  isScheduled = true;
  const hasFrames = typeof requestAnimationFrame === 'function' && !document.hidden;
  if (hasFrames) requestAnimationFrame(flush);
  else setTimeout(flush, typeof document === 'undefined' ? 0 : HIDDEN_MS);
}

/** Does the work when what is drawn in this frame has been painted. */
export function afterPaint(work: () => void): void {
  if (typeof requestAnimationFrame === 'function' && !document.hidden) requestAnimationFrame(() => setTimeout(work));
  else setTimeout(work);
}

/** For what never rests: after quiet at the next frame, else at the first one after so long. Frames between are for the reader. */
export function throttled(work: () => void, everyMs: number): () => void {
  let isScheduled = false;
  let doneAt = -Infinity;
  const run = (): void => {
    isScheduled = false;
    doneAt = performance.now();
    work();
  };
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    const wait = doneAt + everyMs - performance.now();
    if (wait <= 0) atNextFrame(run);
    else setTimeout(() => atNextFrame(run), wait);
  };
}

function flush(): void {
  isScheduled = false;
  const works = [...pending];
  pending.clear();
  for (const work of works) work();
}
