// Bars for the chart, computed from prices. They are only drawn, so floating-point numbers suffice.

export interface Bar {
  /** Start, seconds since the epoch. */
  time: number;
  open: number;
  high: number;
  low: number;
  close: number;
}

/**
 * Bar lengths in seconds, and the number of bars kept of each: the width of a screen and some
 * history.
 */
export const BAR_LENGTHS = { '1s': 1, '10s': 10, '1m': 60 } as const;
export type BarLength = keyof typeof BAR_LENGTHS;
export const BARS_MAX = 480;

const LENGTHS = Object.keys(BAR_LENGTHS) as BarLength[];

/** The bars of one security. */
export class Candles {
  private readonly lists: Record<BarLength, Bar[]> = { '1s': [], '10s': [], '1m': [] };

  /** Adds a price at a time in seconds since the epoch. Ignores NaN. */
  addPrice(price: number, at: number): void {
    if (Number.isNaN(price) || Number.isNaN(at)) return;
    for (const length of LENGTHS) {
      put(this.lists[length], Math.floor(at / BAR_LENGTHS[length]) * BAR_LENGTHS[length], price);
    }
  }

  of(length: BarLength): readonly Bar[] {
    return this.lists[length];
  }
}

function put(bars: Bar[], time: number, price: number): void {
  const newest = bars.at(-1);
  if (!newest || newest.time < time) {
    const open = newest?.close ?? price;
    bars.push({ time, open, high: Math.max(open, price), low: Math.min(open, price), close: price });
    if (bars.length > BARS_MAX) bars.shift();
    return;
  }
  // A late tick belongs to a closed bar, which must not change.
  if (newest.time > time) return;
  newest.high = Math.max(newest.high, price);
  newest.low = Math.min(newest.low, price);
  newest.close = price;
}
