// The lines of own orders in the chart: one for each side, price and kind, whatever the number of
// orders there.

import { type Decimal, add, decimal, stepBy, units } from './decimal';
import { hasLimit, hasStop } from './ticket';
import type { Order, Side } from './types';

/** Orders that one drag of a line moves, at most: each is a request of its own. */
export const MOVED_MAX = 10;

export interface OrderLine {
  /** Side, price and kind. */
  key: string;
  side: Side;
  price: Decimal;
  isStop: boolean;
  /** Remaining quantity of the orders at the price. */
  quantity: Decimal;
  orders: number;
  /** Keys of the orders at the price, at most `MOVED_MAX`. */
  members: string[];
}

/** An order with a key that stays the same when a modification changes the order's id. */
type KeyedOrder = Order & { key: string };

export function orderLines(orders: readonly KeyedOrder[]): OrderLine[] {
  const lines = new Map<string, OrderLine>();
  const put = (
    { key: member, side, remainingQuantity }: KeyedOrder,
    text: Decimal | undefined,
    isStop: boolean,
  ): void => {
    const exact = units(text);
    if (exact === null) return;
    const key = `${side} ${exact} ${isStop}`;
    const line: OrderLine = lines.get(key) ?? {
      key,
      side,
      price: decimal(exact),
      isStop,
      quantity: '0',
      orders: 0,
      members: [],
    };
    line.quantity = add(line.quantity, remainingQuantity);
    line.orders++;
    if (line.members.length < MOVED_MAX) line.members.push(member);
    lines.set(key, line);
  };
  for (const order of orders) {
    if (hasLimit(order.type)) put(order, order.limit, false);
    if (hasStop(order.type)) put(order, order.stop, true);
  }
  return [...lines.values()];
}

/** Returns the multiple of the tick size that is nearest to a price of the chart. */
export function nearestTick(price: number, tickSize: Decimal): Decimal {
  const tick = Number(tickSize);
  const exact = units(tickSize) ?? 0n;
  if (!Number.isFinite(price) || exact <= 0n) return decimal(0n);
  return decimal(BigInt(Math.round(price / tick)) * exact);
}

/** Returns the price some ticks away. */
export function tickAway(price: Decimal, tickSize: Decimal, ticks: number): Decimal {
  return decimal(stepBy(units(price) ?? 0n, tickSize, BigInt(ticks)));
}

/** Returns what a modification needs to move an order to another price. */
export function movedTo(
  order: Order,
  isStop: boolean,
  price: Decimal,
): { quantity: Decimal; limit: Decimal; stop: Decimal } {
  const { quantity, limit = '', stop = '' } = order;
  return isStop ? { quantity, limit, stop: price } : { quantity, limit: price, stop };
}
