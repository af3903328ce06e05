// The life of an order as a list of entries: when and by which login it was sent, each fill, each
// change of its status. Entries come from three sources, none of which has all of them:
//
//   the order ──────── sent, modified, cancelled, with the login; its newest status
//   transactions ───── each fill of the day
//   status messages ── each change since the page was opened

import { type Decimal, formatDecimal } from './decimal';
import type { Instant, Order, OrderStatus, Sender, Transaction } from './types';

export interface HistoryEntry {
  at: Instant;
  what: string;
  detail: string;
  isFill: boolean;
}

/** A status message, as far as the history needs it. */
export interface StatusChange {
  at: Instant;
  status: OrderStatus;
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
      what: statusText(change.status),
      detail: [terms(change, places), change.reason].filter(Boolean).join(', '),
      isFill: false,
    })),
  ];
  if (!changes.some((change) => change.status === order.status)) {
    entries.push({ at: order.lastUpdate, what: statusText(order.status), detail: order.reason ?? '', isFill: false });
  }
  // Entries of the same time keep their order: sent, filled, then the status that follows.
  return entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

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

/** Drops partial fills, which the transactions list with their prices. */
const isStep = (change: StatusChange): boolean => change.status !== 'PARTIALLY_FILLED';

function terms({ quantity, limit, stop }: StatusChange, places: number): string {
  return [
    formatDecimal(quantity),
    limit === undefined ? '' : `limit ${formatDecimal(limit, places)}`,
    stop === undefined ? '' : `stop ${formatDecimal(stop, places)}`,
  ]
    .filter(Boolean)
    .join(' ');
}
