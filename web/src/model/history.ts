// The life of an order as a list of entries: when and by which login it was sent, each fill, each
// change of its status. Entries come from four sources, none of which has all of them:
//
//   the order ──────── sent, modified, cancelled, with the login; its newest status
//   transactions ───── each fill of the day
//   the service ────── each change that it has kept, when the page asked
//   status messages ── each change since the page was opened

import { type Decimal, formatDecimal } from './decimal';
import { nanoseconds } from './time';
import type { Instant, Order, OrderChanges, OrderStatus, Sender, Transaction } from './types';

export interface HistoryEntry {
  at: Instant;
  what: string;
  detail: string;
  isFill: boolean;
}

/** Exec types of requests that were refused. */
const REFUSED: Record<string, string> = {
  CANCEL_REJECTED: 'Cancel refused',
  REPLACE_REJECTED: 'Modification refused',
};

/** A change of an order, as far as the history needs it. */
export interface StatusChange {
  at: Instant;
  status: OrderStatus;
  execType: string;
  quantity: Decimal;
  limit?: Decimal;
  stop?: Decimal;
  reason?: string;
}

/** Returns the entries of an order, oldest first. */
export function historyOf(
  order: Order,
  fills: readonly Transaction[],
  changes: readonly StatusChange[],
  places: number,
): HistoryEntry[] {
  const entries: HistoryEntry[] = [
    { at: order.dateTime, what: 'Sent', detail: senderText(order.sentBy) || order.source, isFill: false },
    ...fills.map((fill) => ({
      at: fill.dateTime,
      what: 'Fill',
      detail: `${formatDecimal(fill.quantity)} at ${formatDecimal(fill.price, places)}`,
      isFill: true,
    })),
    ...changes.filter(isStep).map((change) => ({
      at: change.at,
      what: REFUSED[change.execType] ?? statusText(change.status),
      detail: [terms(change, places), change.reason].filter(Boolean).join(', '),
      isFill: false,
    })),
  ];
  if (!changes.some((change) => change.status === order.status)) {
    entries.push({ at: order.lastUpdate, what: statusText(order.status), detail: order.reason ?? '', isFill: false });
  }
  // Entries of the same time keep their order: sent, filled, then the status that follows.
  return entries
    .map((entry) => ({ entry, ns: nanoseconds(entry.at) ?? 0n }))
    .sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0))
    .map(({ entry }) => entry);
}

/** Returns the changes that the service has kept, and those that arrived later, oldest first. */
export function mergeChanges(
  kept: OrderChanges | undefined,
  received: readonly StatusChange[],
): readonly StatusChange[] {
  if (!kept) return received;
  const changes: StatusChange[] = kept.changes.map(({ dateTime, ...change }) => ({ at: dateTime, ...change }));
  const known = new Set(changes.map(keyOf));
  return [...changes, ...received.filter((change) => !known.has(keyOf(change)))];
}

const keyOf = ({ at, execType, status }: StatusChange): string => `${nanoseconds(at)} ${execType} ${status}`;

/** Formats ExecInst, MinQty and MaxFloor as `instructions G, fill at least 2, show at most 4`. */
export function specialText({ execInst, minQty, maxFloor }: Order): string {
  const parts = [
    execInst && `instructions ${execInst}`,
    minQty && `fill at least ${formatDecimal(minQty)}`,
    maxFloor && `show at most ${formatDecimal(maxFloor)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Formats a sender as `eve, REST, 127.0.0.1`. */
export function senderText(sender: Sender | undefined): string {
  if (!sender) return '';
  return [sender.login, sender.protocol, sender.session, sender.address].filter(Boolean).join(', ');
}

export function statusText(status: OrderStatus): string {
  const words = status.replaceAll('_', ' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Drops partial fills, which the transactions list with their prices, and the entry, which is when
 * the order was sent.
 */
const isStep = ({ execType, status }: StatusChange): boolean =>
  execType in REFUSED || (execType !== 'PENDING_NEW' && status !== 'PARTIALLY_FILLED');

function terms({ quantity, limit, stop }: StatusChange, places: number): string {
  return [
    formatDecimal(quantity),
    limit === undefined ? '' : `limit ${formatDecimal(limit, places)}`,
    stop === undefined ? '' : `stop ${formatDecimal(stop, places)}`,
  ]
    .filter(Boolean)
    .join(' ');
}
