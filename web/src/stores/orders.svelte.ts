// Open orders and orders finished today: a snapshot by REST, new orders by `order.>`, changes by
// the status topics.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
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
  OrderChanges,
  OrderMessage,
  OrderStatus,
  OrderStatusMessage,
  OrderType,
} from '../model/types';

/** Finished orders shown: enough for a long day of manual trading. The service has all of them. */
const FINISHED_MAX = 2_000;

/** Pending orders read again at once; the others follow in turn. */
const FOLLOWED_MAX = 20;

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

const PENDING: Partial<Record<OrderStatus, string>> = { PENDING_CANCEL: 'Cancel', PENDING_REPLACE: 'Modify' };

/** Reasons of cancels that a user asked for. */
const WANTED: readonly string[] = ['requested', 'kill-switch'];

/** Whether the venue or a rule has refused or cancelled an order, rather than a user. */
export const isTurnedDown = ({ status, reason = '' }: Order): boolean =>
  status === 'REJECTED' || (status === 'CANCELED' && reason !== '' && !WANTED.includes(reason));

type OrderTopicMessage = OrderMessage | OrderStatusMessage;

export class OrderStore {
  /** Newest first. */
  rows: OrderRow[] = $state.raw([]);
  open: OrderRow[] = $state.raw([]);
  isComplete = $state(false);

  /**
   * Called for an order of this page that was turned down, and for one whose modification or cancel by
   * this page was refused after the service had accepted it; `what` names that request.
   */
  onTurnedDown: (order: Order, what: string) => void = () => {};

  private readonly byId = new Map<string, OrderRow>();
  /** Keys of orders that this page has sent, until they end. */
  private readonly sent = new Set<string>();
  /** Keys of orders that this page has modified or cancelled, until the outcome is known. */
  private readonly requested = new Set<string>();
  /** Keys of orders with a pending request: whether they were pending at the check before. */
  private readonly pending = new Map<string, boolean>();
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

  /** Submits an order and returns it. */
  async submit(type: OrderType, body: Record<string, unknown>): Promise<Order | undefined> {
    const order = (await this.rest.post(`/rest/execution/order/${PATH[type]}`, {
      body,
      headers: { Prefer: 'return=representation' },
    })) as Order | undefined;
    if (!order) return undefined;
    this.sent.add(order.intId);
    // Its end may be in the response, or have arrived before it.
    this.reportEnd({ ...order, key: order.intId });
    this.reportEnd(this.byId.get(order.intId));
    return order;
  }

  async modify(type: OrderType, body: Record<string, unknown>): Promise<void> {
    this.request(String(body['intId']));
    await this.rest.post(`/rest/execution/modify/order/${PATH[type]}`, { body });
  }

  async cancel(order: Order): Promise<void> {
    this.request(order.intId);
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
      this.pending.clear();
      for (const row of this.byId.values()) this.settle(row);
      const keys = new Set([...this.byId.values()].map(({ key }) => key));
      for (const key of this.changes.keys()) if (!keys.has(key)) this.changes.delete(key);
    };
  }

  /**
   * Reads again the orders whose request is pending for long. The refusal of a request has no topic, so
   * that the order would stay pending here. The page calls it at intervals.
   */
  async followPending(): Promise<void> {
    const followed = [...this.pending].filter(([, isOld]) => isOld).slice(0, FOLLOWED_MAX);
    for (const key of this.pending.keys()) this.pending.set(key, true);
    const keys = new Set(followed.map(([key]) => key));
    const rows = [...this.byId.values()].filter((row) => keys.has(row.key));
    await Promise.allSettled(rows.map((row) => this.follow(row)));
  }

  /** Fetches an order with its senders. Several clients may have used its id. */
  async fetch(order: Order): Promise<Order | undefined> {
    const found = await this.rest.get<Order[]>(`/rest/execution/order/${encodeURIComponent(order.intId)}`);
    return found.find((one) => one.intId === order.intId && one.dateTime === order.dateTime);
  }

  /** Fetches what happened to an order: nothing if a later order has its id. */
  async fetchChanges(order: Order): Promise<OrderChanges> {
    const query = new URLSearchParams({ intId: order.intId, accountId: String(order.accountId) });
    const found = await this.rest.get<OrderChanges>(`/rest/ext/order/changes?${query}`);
    return found.dateTime === order.dateTime ? found : { ...found, complete: false, changes: [] };
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
    this.settle(row);
    if (message.type === 'ORDER_STATUS') this.record(row, message as OrderStatusMessage);
  }

  private async follow(row: OrderRow): Promise<void> {
    const found = await this.fetch(row);
    const known = this.byId.get(row.intId);
    // A message may have arrived meanwhile.
    if (!found || known !== row) return;
    // Another one that is pending has its turn first.
    if (this.pending.delete(row.key)) this.pending.set(row.key, true);
    if (found.status === row.status) return;
    const what = PENDING[row.status] ?? '';
    const order = { ...found, key: row.key };
    this.byId.set(row.intId, order);
    if (isOpen(order) && this.requested.has(row.key)) this.onTurnedDown(order, what);
    this.settle(order);
    atNextFrame(() => this.draw());
  }

  private request(intId: string): void {
    const key = this.byId.get(intId)?.key;
    if (key !== undefined) this.requested.add(key);
  }

  /** Notes whether a request of the order is pending. */
  private settle(order: OrderRow): void {
    if (PENDING[order.status] !== undefined) {
      if (!this.pending.has(order.key)) this.pending.set(order.key, false);
      return;
    }
    if (this.pending.delete(order.key) || !isOpen(order)) this.requested.delete(order.key);
    this.reportEnd(order);
  }

  /** Reports the end of an order of this page, if it was turned down. */
  private reportEnd(order: OrderRow | undefined): void {
    if (!order || isOpen(order) || !this.sent.delete(order.key)) return;
    if (isTurnedDown(order)) this.onTurnedDown(order, '');
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
