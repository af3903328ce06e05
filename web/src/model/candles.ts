// Bars made from ticks, for the chart. Drawn, so numbers will do.

import type { Tick } from './types';

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

/** The bars of one security. */
export class Candles {
  private readonly lists: Record<BarLength, Bar[]> = { '1s': [], '10s': [], '1m': [] };

  /** Takes a tick in at its last price, or between bid and ask where nothing was traded. */
  take(tick: Tick): void {
    const price = priceOf(tick);
    const at = Date.parse(tick.dateTime) / 1000;
    if (price === null || Number.isNaN(at)) return;
    for (const length of Object.keys(BAR_LENGTHS) as BarLength[]) {
      put(this.lists[length], Math.floor(at / BAR_LENGTHS[length]) * BAR_LENGTHS[length], price);
    }
  }

  of(length: BarLength): readonly Bar[] {
    return this.lists[length];
  }
}

export function priceOf(tick: Tick): number | null {
  if (tick.last !== undefined) return Number(tick.last);
  return tick.bid !== undefined && tick.ask !== undefined ? (Number(tick.bid) + Number(tick.ask)) / 2 : null;
}

function put(bars: Bar[], time: number, price: number): void {
  const newest = bars.at(-1);
  if (!newest || newest.time < time) {
    bars.push({ time, open: newest?.close ?? price, high: price, low: price, close: price });
    const bar = bars.at(-1)!;
    bar.high = Math.max(bar.high, bar.open);
    bar.low = Math.min(bar.low, bar.open);
    if (bars.length > BARS_MAX) bars.shift();
    return;
  }
  // A tick that comes late belongs to a bar that is closed: it would be drawn into the past.
  if (newest.time > time) return;
  newest.high = Math.max(newest.high, price);
  newest.low = Math.min(newest.low, price);
  newest.close = price;
}
