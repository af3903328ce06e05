// How long the service has sent nothing. While the thread of the page is blocked, such as by a long
// task or a sleeping machine, it cannot read what the service sends: that time does not count, and
// the page waits for the next heart-beat before it calls the connection quiet or lost.

/**
 * Time between two checks from which the thread was blocked. A hidden page runs its timers once per
 * second, which is no block.
 */
const BLOCKED_MS = 1_500;

export class Silence {
  /** Time from which the silence counts, as of `performance.now()`. */
  private since = 0;
  private checkedAt = Infinity;

  /** Records that the service has sent something. */
  heard(now: number): void {
    this.since = now;
  }

  /** Returns the time without any data. It is called at intervals shorter than `BLOCKED_MS`. */
  check(now: number): number {
    if (now - this.checkedAt > BLOCKED_MS) this.since = now;
    this.checkedAt = now;
    return Math.max(0, now - this.since);
  }
}
