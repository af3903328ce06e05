// The lines of own orders in the chart: one for each side, price and kind, whatever the number of
// orders there.

import { type Decimal, add, decimal, units } from './decimal';
import { hasLimit, hasStop } from './ticket';
import type { Order, Side } from './types';

export interface OrderLine {
  side: Side;
  price: Decimal;
  isStop: boolean;
  /** Remaining quantity of the orders at the price. */
  quantity: Decimal;
  orders: number;
}

export function orderLines(orders: readonly Order[]): OrderLine[] {
  const lines = new Map<string, OrderLine>();
  const put = ({ side, remainingQuantity }: Order, text: Decimal | undefined, isStop: boolean): void => {
    const exact = units(text);
    if (exact === null) return;
    const key = `${side} ${exact} ${isStop}`;
    const line = lines.get(key) ?? { side, price: decimal(exact), isStop, quantity: '0', orders: 0 };
    lines.set(key, { ...line, quantity: add(line.quantity, remainingQuantity), orders: line.orders + 1 });
  };
  for (const order of orders) {
    if (hasLimit(order.type)) put(order, order.limit, false);
    if (hasStop(order.type)) put(order, order.stop, true);
  }
  return [...lines.values()];
}
