// Bars for the chart, computed from prices. They are only drawn, so floating-point numbers suffice.

export interface Bar {
  /** Start, seconds since the epoch. */
  time: number;
  open: number;
  high: number;
  low: number;
  close: number;
  volume: number;
}

/**
 * Bar lengths in seconds, and the number of bars kept of each: the width of a screen and some
 * history.
 */
export const BAR_LENGTHS = {
  '1s': 1,
  '10s': 10,
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3_600,
  '1d': 86_400,
} as const;
export type BarLength = keyof typeof BAR_LENGTHS;
export const BARS_MAX = 480;
/** Bars of one request, at most; the service refuses more. */
const REQUEST_MAX = 10_000;

const LENGTHS = Object.keys(BAR_LENGTHS) as BarLength[];

/** Lengths of bars that the service keeps, longest first. */
const KEPT = ['1d', '1m', '1s'] as const;

/** Returns the length of the service's bars from which bars of a length are made. */
function sourceOf(length: BarLength): (typeof KEPT)[number] {
  return KEPT.find((kept) => BAR_LENGTHS[kept] <= BAR_LENGTHS[length]) ?? '1s';
}

/** Returns the interval of the service to ask for, and the number of its bars that fill the chart. */
export function historyRequest(length: BarLength): { interval: string; limit: number } {
  const interval = sourceOf(length);
  const limit = (BARS_MAX * BAR_LENGTHS[length]) / BAR_LENGTHS[interval];
  return { interval, limit: Math.min(limit, REQUEST_MAX) };
}

/** The bars of one security. */
export class Candles {
  private readonly lists = Object.fromEntries(LENGTHS.map((length) => [length, []])) as unknown as Record<
    BarLength,
    Bar[]
  >;

  /** Adds a price at a time in seconds since the epoch, and what was traded. Ignores NaN. */
  addPrice(price: number, at: number, traded = 0): void {
    if (Number.isNaN(price) || Number.isNaN(at)) return;
    for (const length of LENGTHS) put(this.lists[length], BAR_LENGTHS[length], price, at, traded);
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
    // Longer bars are made from shorter ones; a day begins when the exchange says so.
    const isMade = sourceOf(length) !== length;
    for (const bar of history) {
      if (isMade) append(older, { ...bar, time: floor(bar.time, step) }, (a, b) => a + b);
      else append(older, bar, Math.max);
    }
    const end = older.at(-1);
    // Before the service was asked, days began at midnight of UTC.
    const newer = bars.filter((bar) => !end || bar.time >= end.time || (length === '1d' && bar.time > end.time - step));
    // The service and the page counted the same trades.
    for (const bar of newer) append(older, { ...bar, time: startOf(end, step, bar.time) }, Math.max);
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

/**
 * Adds a bar that is not older than the newest one. `volume` returns that of two bars of the same
 * time.
 */
function append(bars: Bar[], bar: Bar, volume: (a: number, b: number) => number): void {
  const newest = bars.at(-1);
  if (!newest || newest.time < bar.time) {
    bars.push({ ...bar });
    return;
  }
  newest.high = Math.max(newest.high, bar.high);
  newest.low = Math.min(newest.low, bar.low);
  newest.close = bar.close;
  newest.volume = volume(newest.volume, bar.volume);
}

function put(bars: Bar[], step: number, price: number, at: number, traded: number): void {
  const newest = bars.at(-1);
  const time = startOf(newest, step, at);
  if (!newest || newest.time < time) {
    const open = newest?.close ?? price;
    bars.push({ time, open, high: Math.max(open, price), low: Math.min(open, price), close: price, volume: traded });
    if (bars.length > BARS_MAX) bars.shift();
    return;
  }
  // A late tick belongs to a closed bar, which must not change.
  if (newest.time > time) return;
  newest.high = Math.max(newest.high, price);
  newest.low = Math.min(newest.low, price);
  newest.close = price;
  newest.volume += traded;
}
