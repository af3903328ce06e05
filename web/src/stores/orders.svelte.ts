// Open orders and orders finished today: a snapshot by REST, new orders by `order.>`, changes by
// the status topics.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sequence, Sync } from '../link/sync';
import type { Decimal } from '../model/decimal';
import { parseJson } from '../model/json';
import { PATH } from '../model/ticket';
import { instantOf, nanoseconds } from '../model/time';
import type {
  CanceledOrders,
  Instant,
  Order,
  OrderMessage,
  OrderStatus,
  OrderStatusMessage,
  OrderType,
} from '../model/types';

/** Finished orders shown: enough for a long day of manual trading. The service has all of them. */
const FINISHED_MAX = 2_000;

/** Changes recorded of each order; a busy order has hundreds of fills, of which REST has all. */
export const CHANGES_MAX = 200;

const FINISHED: readonly OrderStatus[] = ['FILLED', 'CANCELED', 'REJECTED', 'EXPIRED'];

/** An order with a key that stays the same when a modification changes the order's id. */
export interface OrderRow extends Order {
  key: string;
}

/** A change of an order that the page received. */
export interface OrderChange {
  at: Instant;
  status: OrderStatus;
  execType: string;
  quantity: Decimal;
  limit?: Decimal;
  stop?: Decimal;
  lastQuantity?: Decimal;
  lastPrice?: Decimal;
  reason?: string;
}

export const isOpen = (order: Order): boolean => !FINISHED.includes(order.status);

type OrderTopicMessage = OrderMessage | OrderStatusMessage;

export class OrderStore {
  /** Newest first. */
  rows: OrderRow[] = $state.raw([]);
  open: OrderRow[] = $state.raw([]);
  isComplete = $state(false);

  private readonly byId = new Map<string, OrderRow>();
  /** Changes by the key of the order, oldest first. */
  private readonly changes = new Map<string, OrderChange[]>();
  private readonly sequence = new Sequence();
  private readonly sync: Sync<OrderTopicMessage>;
  private unsubscribe = (): void => {};

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
  ) {
    this.sync = new Sync({
      snapshot: () => this.snapshot(),
      apply: (message) => this.apply(message),
      draw: () => this.draw(),
    });
    broker.listen('order.>', (_, body) => this.sync.handle(parseJson(body) as OrderMessage));
  }

  /**
   * Subscribes to the status topics, whose prefix is a setting of the service. Then fetches the
   * orders.
   */
  listen(prefix: string): void {
    this.unsubscribe();
    const handle = (_: string, body: string): void => this.sync.handle(parseJson(body) as OrderStatusMessage);
    this.unsubscribe = this.broker.listen(`${prefix}.>`, handle, { onSubscribed: () => void this.restart() });
  }

  /** Fetches all orders: at the start, after a lost connection, and after a gap. */
  restart(): Promise<void> {
    this.sequence.reset();
    this.isComplete = false;
    return this.sync.restart();
  }

  /** Submits an order and returns its id. */
  async submit(type: OrderType, body: Record<string, unknown>): Promise<string> {
    const order = (await this.rest.post(`/rest/execution/order/${PATH[type]}`, {
      body,
      headers: { Prefer: 'return=representation' },
    })) as Order | undefined;
    return order?.intId ?? '';
  }

  async modify(type: OrderType, body: Record<string, unknown>): Promise<void> {
    await this.rest.post(`/rest/execution/modify/order/${PATH[type]}`, { body });
  }

  async cancel(order: Order): Promise<void> {
    await this.rest.delete(`/rest/execution/order/${encodeURIComponent(order.intId)}?accountId=${order.accountId}`);
  }

  /** Cancels all open orders of a strategy and side, where these are given, with one request. */
  async cancelAll(strategyName: string, side: string): Promise<CanceledOrders> {
    const query = new URLSearchParams({ all: 'true' });
    if (strategyName !== '') query.set('strategyName', strategyName);
    if (side !== '') query.set('side', side);
    return (await this.rest.delete(`/rest/execution/order?${query}`)) as CanceledOrders;
  }

  private async snapshot(): Promise<() => void> {
    const [open, finished] = await Promise.all([
      this.rest.get<Order[]>('/rest/execution/order'),
      this.rest.get<Order[]>(`/rest/ext/order/history?limit=${FINISHED_MAX}`),
    ]);
    return () => {
      const before = new Map(this.byId);
      this.byId.clear();
      // An order in both lists finished between the two responses.
      for (const order of [...open, ...finished]) {
        const known = before.get(order.intId) ?? before.get(order.origIntId ?? '');
        this.byId.set(order.intId, { ...order, key: known?.key ?? order.intId });
      }
      const keys = new Set([...this.byId.values()].map(({ key }) => key));
      for (const key of this.changes.keys()) if (!keys.has(key)) this.changes.delete(key);
    };
  }

  /** Fetches an order with its senders. Several clients may have used its id. */
  async fetch(order: Order): Promise<Order | undefined> {
    const found = await this.rest.get<Order[]>(`/rest/execution/order/${encodeURIComponent(order.intId)}`);
    return found.find((one) => one.intId === order.intId && one.dateTime === order.dateTime);
  }

  /** Returns the changes of an order since the page was opened, oldest first. */
  changesOf(key: string): readonly OrderChange[] {
    void this.rows;
    return this.changes.get(key) ?? [];
  }

  private apply(message: OrderTopicMessage): void {
    if (!this.sequence.follows(`${message.type}.${message.securityId}`, message.seq)) {
      this.refetch();
      return;
    }
    const known = this.known(message);
    if (known && (nanoseconds(known.lastUpdate) ?? 0n) > BigInt(message.ts)) return;
    const order =
      message.type === 'ORDER'
        ? orderFromMessage(message as OrderMessage)
        : orderFromStatus(message as OrderStatusMessage, known);
    if (!order) {
      // A status of an unknown order: a message is missing.
      this.refetch();
      return;
    }
    if (known) this.byId.delete(known.intId);
    const row = { ...order, key: known?.key ?? order.intId };
    this.byId.set(order.intId, row);
    if (message.type === 'ORDER_STATUS') this.record(row, message as OrderStatusMessage);
  }

  private record({ key, limit, stop }: OrderRow, message: OrderStatusMessage): void {
    const { status, execType, quantity, lastQuantity, lastPrice, reason, ts } = message;
    const changes = this.changes.get(key) ?? [];
    changes.push({
      at: instantOf(BigInt(ts)),
      status,
      execType,
      quantity,
      limit,
      stop,
      lastQuantity,
      lastPrice,
      reason,
    });
    if (changes.length > CHANGES_MAX) changes.shift();
    this.changes.set(key, changes);
  }

  private refetch(): void {
    this.sequence.reset();
    this.isComplete = false;
    this.sync.gap();
  }

  /** Finds an order by its current or its previous id. */
  private known({ intId, origIntId }: OrderTopicMessage): OrderRow | undefined {
    return this.byId.get(intId) ?? (origIntId === undefined ? undefined : this.byId.get(origIntId));
  }

  private draw(): void {
    const rows = [...this.byId.values()].sort((a, b) =>
      a.dateTime < b.dateTime ? 1 : a.dateTime > b.dateTime ? -1 : 0,
    );
    this.open = rows.filter(isOpen);
    const finished = rows.length - this.open.length;
    if (finished > FINISHED_MAX) this.drop(rows, finished - FINISHED_MAX);
    this.rows = rows;
    this.isComplete = this.sync.isComplete;
  }

  /** Removes the oldest finished orders. */
  private drop(rows: OrderRow[], count: number): void {
    for (let at = rows.length - 1; at >= 0 && count > 0; at--) {
      const order = rows[at]!;
      if (isOpen(order)) continue;
      rows.splice(at, 1);
      this.byId.delete(order.intId);
      this.changes.delete(order.key);
      count--;
    }
  }
}

/** Returns the complete order of a message. */
function orderFromMessage({ orderType, seq: _seq, ts: _ts, type: _type, ...rest }: OrderMessage): Order {
  return { ...rest, type: orderType };
}

/** Returns a known order after a status message. */
function orderFromStatus(message: OrderStatusMessage, known: Order | undefined): Order | undefined {
  if (!known) return undefined;
  const { seq: _seq, ts, type: _type, execType: _execType, ...rest } = message;
  return { ...known, unknown: false, reason: undefined, ...rest, lastUpdate: instantOf(BigInt(ts)) };
}
