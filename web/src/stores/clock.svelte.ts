// The time of the service, as far as its responses tell. The clock of the browser may be wrong, and
// then every age of a price would be wrong.

const TICK_MS = 1_000;
/**
 * A Date header has whole seconds and may be one second old, so a smaller difference means nothing.
 */
const DIFFERENCE_MS_MIN = 2_000;
const HEADER_ERROR_MS = 1_000;

export class ClockStore {
  /** Time of the service in milliseconds since the epoch; it changes once per second. */
  now = $state(Date.now());
  /** Time of the service minus the time of the browser. */
  private offsetMs = 0;

  /** Starts the clock. The returned function stops it. */
  watch(): () => void {
    const timer = setInterval(() => this.tick(), TICK_MS);
    return () => clearInterval(timer);
  }

  /** Learns the time of the service from the Date header of a response. */
  learn(date: string | null, receivedAt = Date.now()): void {
    const at = Date.parse(date ?? '');
    if (Number.isNaN(at)) return;
    const offset = at + HEADER_ERROR_MS - receivedAt;
    if (Math.abs(offset - this.offsetMs) < DIFFERENCE_MS_MIN) return;
    this.offsetMs = Math.abs(offset) < DIFFERENCE_MS_MIN ? 0 : offset;
    this.tick();
  }

  tick(local = Date.now()): void {
    this.now = local + this.offsetMs;
  }

  /** Returns the age of a message from its `ts`, in milliseconds; undefined without a message. */
  age(ts: string | undefined): number | undefined {
    return ts === undefined ? undefined : Math.max(0, this.now - Number(ts) / 1e6);
  }
}
