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
export const BAR_LENGTHS = { '1s': 1, '10s': 10, '1m': 60, '1d': 86_400 } as const;
export type BarLength = keyof typeof BAR_LENGTHS;
export const BARS_MAX = 480;

/**
 * The interval of the service from which bars of each length are made, and the number of its bars
 * that fill the chart.
 */
export const SOURCES: Record<BarLength, { interval: string; limit: number }> = {
  '1s': { interval: '1s', limit: BARS_MAX },
  '10s': { interval: '1s', limit: BARS_MAX * 10 },
  '1m': { interval: '1m', limit: BARS_MAX },
  '1d': { interval: '1d', limit: BARS_MAX },
};

const LENGTHS = Object.keys(BAR_LENGTHS) as BarLength[];

/** The bars of one security. */
export class Candles {
  private readonly lists: Record<BarLength, Bar[]> = { '1s': [], '10s': [], '1m': [], '1d': [] };

  /** Adds a price at a time in seconds since the epoch. Ignores NaN. */
  addPrice(price: number, at: number): void {
    if (Number.isNaN(price) || Number.isNaN(at)) return;
    for (const length of LENGTHS) put(this.lists[length], BAR_LENGTHS[length], price, at);
  }

  /**
   * Adds bars of the service, in order of time, before and below those of the received prices. Of two
   * bars of the same time the result is both: the page may have missed prices of the first, and the
   * service did not know the newest price yet.
   */
  addHistory(length: BarLength, history: readonly Bar[]): void {
    const bars = this.lists[length];
    const step = BAR_LENGTHS[length];
    const older: Bar[] = [];
    // Bars of several seconds are made from those of one; a day begins when the exchange says so.
    for (const bar of history) merge(older, length === '10s' ? { ...bar, time: floor(bar.time, step) } : bar);
    const end = older.at(-1);
    // Before the service was asked, days began at midnight of UTC.
    const newer = bars.filter((bar) => !end || bar.time >= end.time || (length === '1d' && bar.time > end.time - step));
    for (const bar of newer) merge(older, { ...bar, time: startOf(end, step, bar.time) });
    bars.splice(0, bars.length, ...older.slice(-BARS_MAX));
  }

  of(length: BarLength): readonly Bar[] {
    return this.lists[length];
  }
}

const floor = (at: number, step: number): number => Math.floor(at / step) * step;

/** Returns the start of the bar of a time. Bars follow the newest one, which may begin at any time. */
function startOf(newest: Bar | undefined, step: number, at: number): number {
  return newest ? newest.time + floor(at - newest.time, step) : floor(at, step);
}

/** Adds a bar that is not older than the newest one. */
function merge(bars: Bar[], bar: Bar): void {
  const newest = bars.at(-1);
  if (!newest || newest.time < bar.time) {
    bars.push({ ...bar });
    return;
  }
  newest.high = Math.max(newest.high, bar.high);
  newest.low = Math.min(newest.low, bar.low);
  newest.close = bar.close;
}

function put(bars: Bar[], step: number, price: number, at: number): void {
  const newest = bars.at(-1);
  const time = startOf(newest, step, at);
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
