// Bars made from prices, for the chart. Drawn, so numbers will do.

export interface Bar {
  /** Start, seconds since the epoch. */
  time: number;
  open: number;
  high: number;
  low: number;
  close: number;
}

/** Lengths a reader can choose, in seconds, and how many bars of each are kept: a screen's width and some history. */
export const BAR_LENGTHS = { '1s': 1, '10s': 10, '1m': 60 } as const;
export type BarLength = keyof typeof BAR_LENGTHS;
export const BARS_MAX = 480;

const LENGTHS = Object.keys(BAR_LENGTHS) as BarLength[];

/** The bars of one security. */
export class Candles {
  private readonly lists: Record<BarLength, Bar[]> = { '1s': [], '10s': [], '1m': [] };

  /** Takes in a price of a time, in seconds since the epoch. What is no number is no price. */
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
  // A tick that comes late belongs to a bar that is closed: it would be drawn into the past.
  if (newest.time > time) return;
  newest.high = Math.max(newest.high, price);
  newest.low = Math.min(newest.low, price);
  newest.close = price;
}
