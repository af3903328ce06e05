import { describe, expect, it } from 'vitest';

import { orderLines } from './orderLines';
import type { Order } from './types';

const order = (type: Order['type'], side: Order['side'], rest: Partial<Order>): Order =>
  ({ type, side, remainingQuantity: '10', ...rest }) as Order;

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
});
