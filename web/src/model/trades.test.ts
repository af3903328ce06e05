import { describe, expect, it } from 'vitest';

import { TRADES_MAX, TradeList, directionOf } from './trades';
import type { Tick } from './types';

const time = (second: number): string => `2026-11-15T10:00:${String(second).padStart(2, '0')}Z`;
const tick = (second: number, last: string, volume: string, bid = '10', ask = '11'): Tick =>
  ({ dateTime: time(second), last, volume, bid, ask }) as Tick;
const shown = (list: TradeList) => list.newestFirst.map(({ price, size, direction }) => [price, size, direction]);

describe('the direction of a trade', () => {
  it('is told by the quote, then by the price before', () => {
    const quote = { bid: '10', ask: '11' };
    expect(directionOf('11', quote)).toBe('BUY');
    expect(directionOf('10', quote)).toBe('SELL');
    expect(directionOf('10.5', quote)).toBeUndefined();
    expect(directionOf('10.5', { ...quote, price: '10.4' })).toBe('BUY');
    expect(directionOf('10.5', { ...quote, price: '10.6' })).toBe('SELL');
    expect(directionOf('10.5', { ...quote, price: '10.5', direction: 'SELL' })).toBe('SELL');
    expect(directionOf('x', quote)).toBeUndefined();
  });
});

describe('trades', () => {
  it('are increases of the volume, with the quote before them', () => {
    const list = new TradeList();
    expect(list.addTick(tick(0, '10.5', '100'))).toBe(false);
    expect(list.addTick(tick(1, '11', '102.5', '12', '13'))).toBe(true);
    expect(list.addTick(tick(2, '11', '102.5', '12', '13'))).toBe(false);
    expect(list.addTick(tick(3, '12', '3'))).toBe(true);
    expect(shown(list)).toEqual([
      ['12', '3', 'SELL'],
      ['11', '2.5', 'BUY'],
    ]);
  });

  it('continue the history without a repetition', () => {
    const list = new TradeList();
    list.addTick(tick(3, '11', '100'));
    list.addTick(tick(4, '11', '101'));
    list.addTick(tick(5, '10', '105'));
    list.addHistory([
      { dateTime: time(1), bid: '10', ask: '11' },
      { dateTime: time(2), bid: '10', ask: '11', last: '10', lastSize: '7' },
      { dateTime: time(4), bid: '10', ask: '11', last: '11', lastSize: '1' },
    ]);
    expect(shown(list)).toEqual([
      ['10', '4', 'SELL'],
      ['11', '1', 'BUY'],
      ['10', '7', 'SELL'],
    ]);
    const keys = list.newestFirst.map(({ key }) => key);
    expect(keys).toEqual([...keys].sort((a, b) => b - a));
    list.addTick(tick(6, '11', '106'));
    expect(shown(list)[0]).toEqual(['11', '1', 'BUY']);
  });

  it('are at most TRADES_MAX', () => {
    const list = new TradeList();
    for (let n = 0; n < TRADES_MAX + 10; n++) list.addTick(tick(0, '11', String(n)));
    expect(list.newestFirst).toHaveLength(TRADES_MAX);
    expect(list.newestFirst[0]?.size).toBe('1');
  });
});
