// The marks of own fills in the chart: one for each bar and side, whatever the number of fills
// there.

import type { Bar } from './candles';
import { type Decimal, add, decimal, multiply, units } from './decimal';
import type { Side, Transaction } from './types';

export interface FillMark {
  /** Start of the bar, seconds since the epoch. */
  time: number;
  side: Side;
  quantity: Decimal;
  /** Average price. */
  price: Decimal;
  fills: number;
}

/** Returns the marks in order of time. Fills before the first bar have none. */
export function fillMarks(bars: readonly Bar[], transactions: readonly Transaction[]): FillMark[] {
  const marks = new Map<string, FillMark & { worth: bigint }>();
  for (const { dateTime, type, quantity, price } of transactions) {
    const bar = barAt(bars, Date.parse(dateTime) / 1000);
    const size = absolute(quantity);
    if (!bar || size === null || (type !== 'BUY' && type !== 'SELL')) continue;
    const key = `${bar.time} ${type}`;
    const mark = marks.get(key) ?? { time: bar.time, side: type, quantity: '0', price, fills: 0, worth: 0n };
    marks.set(key, {
      ...mark,
      quantity: add(mark.quantity, decimal(size)),
      fills: mark.fills + 1,
      worth: mark.worth + multiply(size, units(price) ?? 0n),
    });
  }
  return [...marks.values()]
    .map(({ worth, ...mark }) => ({ ...mark, price: mark.fills === 1 ? mark.price : average(worth, mark.quantity) }))
    .sort((a, b) => a.time - b.time || (a.side < b.side ? -1 : 1));
}

/** Returns the bar in which a time lies: the last one that began before it. */
function barAt(bars: readonly Bar[], time: number): Bar | undefined {
  let [low, high] = [0, bars.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars[middle]!.time <= time) low = middle + 1;
    else high = middle;
  }
  return bars[low - 1];
}

/** A sale has a negative quantity. */
function absolute(quantity: Decimal | undefined): bigint | null {
  const size = units(quantity);
  return size !== null && size < 0n ? -size : size;
}

function average(worth: bigint, quantity: Decimal): Decimal {
  const size = units(quantity) ?? 0n;
  return size === 0n ? '0' : decimal((worth * (units('1') ?? 1n)) / size);
}
