import { describe, expect, it } from 'vitest';

import { type StatusChange, historyOf, mergeChanges, specialText } from './history';
import type { Order, OrderChanges, Transaction } from './types';

const order = {
  intId: 'A1',
  quantity: '10',
  status: 'FILLED',
  source: 'REST',
  dateTime: '2026-11-15T10:00:00.000000001Z',
  lastUpdate: '2026-11-15T10:00:05Z',
  sentBy: { login: 'eve', protocol: 'REST', address: '10.0.0.7' },
} as Order;
const fills = [
  { dateTime: '2026-11-15T10:00:05Z', quantity: '6', price: '232.45' },
  { dateTime: '2026-11-15T10:00:03Z', quantity: '4', price: '232.4' },
] as Transaction[];
const change = (at: string, status: StatusChange['status'], rest: Partial<StatusChange> = {}): StatusChange => ({
  at: `2026-11-15T10:00:0${at}Z`,
  status,
  execType: status,
  quantity: '10',
  ...rest,
});
const lines = (entries: ReturnType<typeof historyOf>): string[] =>
  entries.map(({ what, detail }) => `${what} ${detail}`);

describe('the history of an order', () => {
  it('has who sent it, each fill and each status', () => {
    const changes = [change('1', 'NEW', { limit: '233' }), change('3', 'PARTIALLY_FILLED'), change('5', 'FILLED')];
    expect(lines(historyOf(order, fills, changes, 2))).toEqual([
      'Sent eve, REST, 10.0.0.7',
      'New 10 limit 233.00',
      'Fill 4 at 232.40',
      'Fill 6 at 232.45',
      'Filled 10',
    ]);
  });

  it('has the newest status and its reason even if the page missed the change', () => {
    const rejected = { ...order, status: 'REJECTED', reason: 'bad-lot', sentBy: undefined } as Order;
    expect(lines(historyOf(rejected, [], [], 2))).toEqual(['Sent REST', 'Rejected bad-lot']);
  });
});

describe('the changes that the service has kept', () => {
  const kept = {
    intId: 'A1',
    dateTime: order.dateTime,
    complete: true,
    changes: [
      { dateTime: order.dateTime, execType: 'PENDING_NEW', status: 'PENDING_NEW', quantity: '10', filledQuantity: '0' },
      {
        dateTime: '2026-11-15T10:00:01Z',
        execType: 'NEW',
        status: 'NEW',
        quantity: '10',
        filledQuantity: '0',
        limit: '233',
      },
      {
        dateTime: '2026-11-15T10:00:02.5Z',
        execType: 'REPLACE_REJECTED',
        status: 'NEW',
        reason: 'off-tick',
        quantity: '10',
        filledQuantity: '0',
        limit: '233',
      },
      {
        dateTime: '2026-11-15T10:00:03Z',
        execType: 'REPLACED',
        status: 'NEW',
        quantity: '12',
        filledQuantity: '0',
        limit: '234',
      },
    ],
  } as OrderChanges;

  it('are those before the page was opened, and each is shown once', () => {
    const received = [
      change('3.000', 'NEW', { execType: 'REPLACED', quantity: '12' }),
      change('3', 'CANCELED', { quantity: '12', reason: 'requested' }),
    ];
    const canceled = { ...order, quantity: '12', status: 'CANCELED' } as Order;
    expect(lines(historyOf(canceled, [], mergeChanges(kept, received), 2))).toEqual([
      'Sent eve, REST, 10.0.0.7',
      'New 10 limit 233.00',
      'Modification refused 10 limit 233.00, off-tick',
      'New 12 limit 234.00',
      'Canceled 12, requested',
    ]);
  });

  it('may be unknown', () => {
    const received = [change('1', 'NEW')];
    expect(mergeChanges(undefined, received)).toEqual(received);
  });
});

describe('special terms', () => {
  it('are named as far as the order has some', () => {
    expect(specialText(order)).toBe('');
    expect(specialText({ ...order, maxFloor: '4' })).toBe('show at most 4');
    expect(specialText({ ...order, execInst: 'G 1', minQty: '2', maxFloor: '4' })).toBe(
      'instructions G 1, fill at least 2, show at most 4',
    );
  });
});
