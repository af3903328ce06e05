import { describe, expect, it } from 'vitest';

import { fillMarks } from './fillMarks';
import type { Transaction } from './types';

const start = Date.parse('2026-11-15T10:00:00Z') / 1000;
const bar = (second: number) => ({ time: start + second, open: 1, high: 1, low: 1, close: 1, volume: 0 });
const fill = (time: string, type: string, quantity: string, price: string): Transaction =>
  ({ dateTime: `2026-11-15T10:00:${time}Z`, type, quantity, price }) as Transaction;

describe('marks of fills', () => {
  it('are one for each bar and side, with sums and average prices', () => {
    const marks = fillMarks(
      [bar(0), bar(10)],
      [
        fill('12', 'BUY', '3', '12'),
        fill('10.000000001', 'BUY', '1', '8'),
        fill('19', 'SELL', '-0.5', '7.77'),
        fill('09.999', 'BUY', '2', '5'),
      ],
    );
    expect(marks).toEqual([
      { time: start, side: 'BUY', quantity: '2', price: '5', fills: 1 },
      { time: start + 10, side: 'BUY', quantity: '4', price: '11', fills: 2 },
      { time: start + 10, side: 'SELL', quantity: '0.5', price: '7.77', fills: 1 },
    ]);
  });

  it('are missing before the first bar, and for what is not a fill', () => {
    expect(fillMarks([bar(5)], [fill('04', 'BUY', '1', '1'), fill('06', 'CREDIT', '1', '1')])).toEqual([]);
    expect(fillMarks([], [fill('04', 'BUY', '1', '1')])).toEqual([]);
  });
});
