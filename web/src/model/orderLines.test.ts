import { describe, expect, it } from 'vitest';

import { MOVED_MAX, movedTo, nearestTick, orderLines, tickAway } from './orderLines';
import type { Order } from './types';

const order = (type: Order['type'], side: Order['side'], rest: Partial<Order>, key = ''): Order & { key: string } =>
  ({ type, side, remainingQuantity: '10', ...rest, key }) as Order & { key: string };

describe('lines of orders', () => {
  it('are one for each side, price and kind', () => {
    const lines = orderLines([
      order('LIMIT', 'BUY', { limit: '100' }),
      order('LIMIT', 'BUY', { limit: '100.00', remainingQuantity: '2.5' }),
      order('LIMIT', 'SELL', { limit: '100' }),
      order('STOP_LIMIT', 'SELL', { limit: '89', stop: '90' }),
      order('STOP', 'BUY', { stop: '100' }),
      order('MARKET', 'BUY', {}),
    ]);
    expect(lines.map(({ side, price, isStop, quantity, orders }) => [side, price, isStop, quantity, orders])).toEqual([
      ['BUY', '100', false, '12.5', 2],
      ['SELL', '100', false, '10', 1],
      ['SELL', '89', false, '10', 1],
      ['SELL', '90', true, '10', 1],
      ['BUY', '100', true, '10', 1],
    ]);
  });

  it('name their orders, up to the number that one drag moves', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => order('LIMIT', 'BUY', { limit: '1' }, `k${at}`));
    expect(orderLines(many(2))[0]).toMatchObject({ orders: 2, members: ['k0', 'k1'] });
    const [line] = orderLines(many(MOVED_MAX + 1));
    expect([line?.orders, line?.members.length]).toEqual([MOVED_MAX + 1, MOVED_MAX]);
  });

  it('move in ticks', () => {
    expect(nearestTick(100.0349, '0.05')).toBe('100.05');
    expect(nearestTick(0.1 + 0.2, '0.1')).toBe('0.3');
    expect(nearestTick(-3.2, '0.25')).toBe('-3.25');
    expect(nearestTick(NaN, '0.25')).toBe('0');
    expect(nearestTick(5, '0')).toBe('0');
    expect(tickAway('100.05', '0.05', -10)).toBe('99.55');
  });

  it('change only the price of their kind', () => {
    const both = order('STOP_LIMIT', 'SELL', { quantity: '7', limit: '89', stop: '90' });
    expect(movedTo(both, true, '91')).toEqual({ quantity: '7', limit: '89', stop: '91' });
    expect(movedTo(both, false, '88')).toEqual({ quantity: '7', limit: '88', stop: '90' });
    expect(movedTo(order('STOP', 'SELL', { quantity: '7', stop: '90' }), true, '91').limit).toBe('');
  });
});
