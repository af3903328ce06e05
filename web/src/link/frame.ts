// Schedules drawing at most once per animation frame, whatever the number of messages.

/** Update interval of a hidden page, which gets no animation frames. */
const HIDDEN_MS = 500;

const pending = new Set<() => void>();
let isScheduled = false;

/** Runs the work before the next frame is drawn; once per frame, however often it is requested. */
export function atNextFrame(work: () => void): void {
  pending.add(work);
  if (isScheduled) return;
  isScheduled = true;
  const hasFrames = typeof requestAnimationFrame === 'function' && !document.hidden;
  if (hasFrames) requestAnimationFrame(flush);
  else setTimeout(flush, typeof document === 'undefined' ? 0 : HIDDEN_MS);
}

/** Runs the work after this frame has been painted. */
export function afterPaint(work: () => void): void {
  if (typeof requestAnimationFrame === 'function' && !document.hidden) requestAnimationFrame(() => setTimeout(work));
  else setTimeout(work);
}

/**
 * Limits frequent work: it runs at the next frame, but not sooner than `everyMs` after the previous
 * run.
 */
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
