import { describe, expect, it } from 'vitest';

import { BARS_MAX, Candles, historyRequest } from './candles';
import { csv } from './csv';
import { peekNumber, peekText } from './peek';
import { type Draft, type OrderContext, change, changedShare, findings, largestShare, request, value } from './ticket';
import { instantOf, latency, nanoseconds } from './time';
import { matches, patternError } from './topic';
import type { Limits, Order, Position, Security, Tick } from './types';

const AAPL: Security = {
  id: 1,
  symbol: 'AAPL',
  description: 'Apple Inc.',
  type: 'STOCK',
  securityFamilyId: 1,
  exchangeId: 1,
  currency: 'USD',
  tickSize: '0.05',
  lotSize: '10',
  contractSize: '1',
  tradeable: true,
};
const TICK: Tick = {
  type: 'TICK',
  seq: 1,
  ts: '1',
  securityId: 1,
  bid: '232.45',
  bidSize: '100',
  ask: '232.55',
  askSize: '100',
  last: '232.5',
  volume: '1',
  dateTime: '2026-11-15T10:00:00Z',
};
const DRAFT: Draft = {
  securityId: 1,
  type: 'LIMIT',
  side: 'BUY',
  quantity: '10',
  limit: '232.45',
  stop: '',
  tif: 'DAY',
  tifDate: '',
  strategyName: 'SERVER',
  accountId: null,
  exchangeOrder: false,
};
const CONTEXT: OrderContext = {
  security: AAPL,
  tick: TICK,
  account: undefined,
  strategy: undefined,
  position: undefined,
  risk: null,
  openOrders: 0,
  now: 0,
};
const LIMITS: Limits = {
  strategyName: 'SERVER',
  tradingEnabled: true,
  maxOrderQty: '0',
  maxOrderValue: '0',
  priceCollarPct: '0',
  maxOpenOrders: 0,
  maxPosition: '0',
  maxOrdersPerS: 0,
  duplicateWindowMs: 0,
};

const fieldsOf = (draft: Partial<Draft>, context: Partial<OrderContext> = {}): string[] =>
  findings({ ...DRAFT, ...draft }, { ...CONTEXT, ...context }).map(({ field, isError }) =>
    isError ? field : `${field}?`,
  );
const limited = (limits: Partial<Limits>): Partial<OrderContext> => ({
  risk: { killSwitch: false, limits: [{ ...LIMITS, ...limits }], restrictions: [] },
});

describe('the order form', () => {
  it('accepts a valid order', () => expect(fieldsOf({})).toEqual([]));

  it('checks quantity, prices and dates', () => {
    expect(fieldsOf({ quantity: '15' })).toEqual(['quantity']);
    expect(fieldsOf({ quantity: '0' })).toEqual(['quantity']);
    expect(fieldsOf({ limit: '232.46' })).toEqual(['limit']);
    expect(fieldsOf({ limit: '' })).toEqual(['limit']);
    expect(fieldsOf({ type: 'MARKET', limit: '' })).toEqual([]);
    expect(fieldsOf({ type: 'STOP', limit: '', stop: '1.01' })).toContain('stop');
    expect(fieldsOf({ type: 'STOP_LIMIT', stop: '240', limit: '240.5' })).toEqual([]);
    expect(fieldsOf({ tif: 'GTD' })).toEqual(['tifDate']);
    expect(fieldsOf({ tif: 'GTD', tifDate: '1969-01-01T00:00' })).toEqual(['tifDate']);
    expect(fieldsOf({}, { security: undefined })).toEqual(['security']);
    expect(fieldsOf({}, { security: { ...AAPL, tradeable: false } })).toEqual(['security']);
  });

  it('tells the limit of which an order uses the largest share', () => {
    const shareOf = (limits: Partial<Limits>, draft: Partial<Draft> = {}) =>
      largestShare({ ...DRAFT, ...draft }, { ...CONTEXT, ...limited(limits) });
    expect(shareOf({})).toBeNull();
    expect(largestShare(DRAFT, CONTEXT)).toBeNull();
    expect(shareOf({ maxOrderQty: '40', maxPosition: '1000' })).toEqual({
      percent: 25,
      text: '25 % of the largest order quantity of SERVER (40)',
    });
    expect(shareOf({ maxOrderQty: '40', maxOrderValue: '4649' })?.text).toBe(
      '50 % of the largest order value of SERVER (4\u202f649)',
    );
    expect(shareOf({ maxPosition: '10', maxOrderQty: '1000' })?.percent).toBe(100);
    expect(shareOf({ maxOrderQty: '40' }, { quantity: 'many' })).toBeNull();
  });

  it('tells the share of a limit that a modification raises', () => {
    const order = { ...DRAFT, intId: 'A1', quantity: '30', filledQuantity: '10', accountId: 1 } as unknown as Order;
    const shareOf = (limits: Partial<Limits>, changes: { quantity?: string; limit?: string }) =>
      changedShare(
        order,
        { quantity: order.quantity, limit: order.limit!, stop: '', ...changes },
        { ...CONTEXT, ...limited(limits), position: { quantity: '10' } as Position },
      );
    expect(shareOf({ maxOrderQty: '100' }, { quantity: '80' })?.percent).toBe(80);
    expect(shareOf({ maxOrderQty: '100' }, { quantity: '20' })).toBeNull();
    expect(shareOf({ maxOrderQty: '100' }, { limit: '233' })).toBeNull();
    expect(shareOf({ maxOrderValue: '10000' }, { limit: '300' })?.percent).toBe(90);
    // The position has the ten filled ones already.
    expect(shareOf({ maxPosition: '100' }, { quantity: '70' })?.percent).toBe(70);
    expect(shareOf({}, { quantity: '80' })).toBeNull();
  });

  it('checks risk limits', () => {
    expect(fieldsOf({ quantity: '20' }, limited({ maxOrderQty: '10' }))).toEqual(['quantity']);
    expect(fieldsOf({}, limited({ maxOrderValue: '2324.5' }))).toEqual([]);
    expect(fieldsOf({}, limited({ maxOrderValue: '2324.49' }))).toEqual(['order']);
    expect(fieldsOf({ limit: '220' }, limited({ priceCollarPct: '5' }))).toEqual(['limit']);
    expect(fieldsOf({ limit: '221' }, limited({ priceCollarPct: '5' }))).toEqual([]);
    expect(fieldsOf({}, limited({ tradingEnabled: false }))).toEqual(['order']);
    expect(fieldsOf({}, limited({ maxPosition: '9' }))).toEqual(['quantity']);
    expect(fieldsOf({ quantity: '20' }, { ...limited({ maxOrderQty: '10', strategyName: 'PAIRS' }) })).toEqual([]);
    expect(fieldsOf({}, { risk: { killSwitch: true, limits: [], restrictions: [] } })).toEqual(['order']);
    const restrictions = [{ strategyName: 'SERVER', securityId: 1 }];
    expect(fieldsOf({}, { risk: { killSwitch: false, limits: [], restrictions } })).toEqual(['security']);
  });

  it('warns about orders that are valid but unusual', () => {
    expect(fieldsOf({ limit: '232.55' })).toEqual(['limit?']);
    expect(fieldsOf({ side: 'SELL', limit: '232.45' })).toEqual(['limit?']);
    expect(fieldsOf({ type: 'STOP', stop: '232.5' })).toEqual(['stop?']);
  });

  it('sends only the prices of the order type', () => {
    expect(request({ ...DRAFT, stop: '5' })).toMatchObject({ limit: '232.45', stop: undefined });
    expect(request({ ...DRAFT, type: 'MARKET' })).toMatchObject({ limit: undefined, stop: undefined });
    expect(request({ ...DRAFT, quantity: '+010.50' })['quantity']).toBe('10.5');
    expect(value(DRAFT, CONTEXT)).toBe('2324.5');
  });

  it('sends only changed values of a modification', () => {
    const order = { intId: 'a', accountId: 1, type: 'LIMIT', quantity: '10', limit: '232.45' } as Order;
    expect(change(order, { quantity: '10.0', limit: '232.450', stop: '' })).toBeNull();
    expect(change(order, { quantity: '20', limit: '232.45', stop: '9' })).toEqual({
      intId: 'a',
      accountId: 1,
      quantity: '20',
    });
  });
});

describe('candles', () => {
  const start = Date.parse('2026-11-15T10:00:00Z') / 1000;

  it('open at the previous close and ignore late ticks', () => {
    const candles = new Candles();
    for (const [second, price] of [
      [0, 10],
      [0, 12],
      [1, 11],
      [0, 99],
      [1, NaN],
    ] as const)
      candles.addPrice(price, start + second, 2);
    expect(candles.of('1s')).toEqual([
      { time: start, open: 10, high: 12, low: 10, close: 12, volume: 4 },
      { time: start + 1, open: 12, high: 12, low: 11, close: 11, volume: 2 },
    ]);
    expect(candles.of('1m')).toHaveLength(1);
  });

  it('keep at most BARS_MAX bars', () => {
    const candles = new Candles();
    for (let s = 0; s < BARS_MAX + 50; s++) candles.addPrice(1, s);
    expect(candles.of('1s')).toHaveLength(BARS_MAX);
  });

  const bar = (time: number, close: number, volume = 0) => ({
    time,
    open: close,
    high: close,
    low: close,
    close,
    volume,
  });

  it('continue the history of the service', () => {
    const candles = new Candles();
    candles.addPrice(12, start + 2, 3);
    candles.addPrice(13, start + 3, 6);
    // The page has missed a price of the second bar, and the service does not know the newest one.
    const history = [bar(start, 10), bar(start + 1, 11), { ...bar(start + 2, 9, 5), high: 20 }];
    candles.addHistory('1s', history);
    candles.addPrice(14, start + 4);
    expect(candles.of('1s')).toEqual([
      bar(start, 10),
      bar(start + 1, 11),
      { time: start + 2, open: 9, high: 20, low: 9, close: 12, volume: 5 },
      { time: start + 3, open: 12, high: 13, low: 12, close: 13, volume: 6 },
      { time: start + 4, open: 13, high: 14, low: 13, close: 14, volume: 0 },
    ]);
    candles.addHistory('1s', []);
    expect(candles.of('1s')).toHaveLength(5);
    expect(history[0]).toEqual(bar(start, 10));
  });

  it('of ten seconds are made from those of one', () => {
    const candles = new Candles();
    candles.addHistory('10s', [bar(start, 10, 1), bar(start + 9, 8, 2), bar(start + 10, 11, 4)]);
    expect(candles.of('10s')).toEqual([
      { time: start, open: 10, high: 10, low: 8, close: 8, volume: 3 },
      bar(start + 10, 11, 4),
    ]);
  });

  it('of hours are made from those of minutes, as many as the service gives', () => {
    const candles = new Candles();
    candles.addHistory('1h', [bar(start, 10, 1), bar(start + 3_540, 8, 2), bar(start + 3_600, 11, 4)]);
    expect(candles.of('1h').map(({ close, volume }) => [close, volume])).toEqual([
      [8, 3],
      [11, 4],
    ]);
    expect(historyRequest('1h')).toEqual({ interval: '1m', limit: 10_000 });
    expect(historyRequest('5m')).toEqual({ interval: '1m', limit: BARS_MAX * 5 });
    expect(historyRequest('1d')).toEqual({ interval: '1d', limit: BARS_MAX });
  });

  it('of a day begin when the trading day of the exchange begins', () => {
    const candles = new Candles();
    const midnight = Date.parse('2026-11-15T05:00:00Z') / 1000;
    candles.addPrice(12, start);
    candles.addHistory('1d', [bar(midnight - 86_400, 9), bar(midnight, 10)]);
    candles.addPrice(13, midnight + 86_399);
    candles.addPrice(14, midnight + 86_400);
    expect(candles.of('1d')).toEqual([
      bar(midnight - 86_400, 9),
      { time: midnight, open: 10, high: 13, low: 10, close: 13, volume: 0 },
      { time: midnight + 86_400, open: 13, high: 14, low: 13, close: 14, volume: 0 },
    ]);
  });

  it('of a long history are the newest', () => {
    const candles = new Candles();
    candles.addHistory(
      '1s',
      Array.from({ length: BARS_MAX + 20 }, (_, s) => bar(start + s, s)),
    );
    expect(candles.of('1s')).toHaveLength(BARS_MAX);
    expect(candles.of('1s').at(-1)).toEqual(bar(start + BARS_MAX + 19, BARS_MAX + 19));
  });
});

describe('peek', () => {
  const body =
    '{"type":"TICK","seq":17,"symbol":"a\\"last\\":5","last":-232.50,"volume":0.5,"dateTime":"2026-11-15T10:00:00.123Z"}';

  it('finds one member of a message', () => {
    expect([peekNumber(body, '"seq":'), peekNumber(body, '"last":'), peekNumber(body, '"volume":')]).toEqual([
      17, -232.5, 0.5,
    ]);
    expect(peekText(body, '"dateTime":', 19)).toBe('2026-11-15T10:00:00');
  });

  it('returns NaN or an empty text for a missing member', () => {
    expect(peekNumber(body, '"bid":')).toBeNaN();
    expect(peekText(body, '"feed":', 3)).toBe('');
  });
});

describe('topics', () => {
  it('match by segments', () => {
    expect(matches('tick.*', 'tick.1')).toBe(true);
    expect(matches('tick.*', 'tick')).toBe(false);
    expect(matches('a.>', 'a')).toBe(true);
    expect(matches('a.>', 'a.b.c')).toBe(true);
    expect(matches('a.*.c', 'a.b.c')).toBe(true);
    expect(matches('a.*', 'a.b.c')).toBe(false);
    expect(matches('>', 'anything.at.all')).toBe(true);
  });

  it('are distinguished from invalid patterns', () => {
    for (const good of ['tick.*', 'a.>', '>', 'the service.>']) expect(patternError(good)).toBeNull();
    for (const bad of ['', 'a..b', 'a.>.b', 'a.b*', 'a b', '/topic/a']) expect(patternError(bad)).not.toBeNull();
  });
});

describe('time', () => {
  it('keeps nanoseconds', () => {
    expect(nanoseconds('2026-11-14T09:30:00.123456789Z')! % 1_000_000_000n).toBe(123456789n);
    expect(nanoseconds('2026-11-14T09:30:00.5Z')! % 1_000_000_000n).toBe(500000000n);
    expect(nanoseconds('yesterday')).toBeNull();
    expect(nanoseconds(instantOf(1794648600123456789n))).toBe(1794648600123456789n);
  });

  it('shows latencies in three digits', () => {
    expect([latency(950), latency(1250), latency(2_000_000)]).toEqual(['950 ns', '1.25 µs', '2.00 ms']);
  });
});

describe('CSV', () => {
  it('quotes special characters and disables formulas', () => {
    expect(
      csv(
        ['a', 'b'],
        [
          ['x,"y"', -5],
          ['=1+1', undefined],
        ],
      ),
    ).toBe('a,b\r\n"x,""y""",-5\r\n\'=1+1,\r\n');
  });
});
