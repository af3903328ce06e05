import { beforeEach, describe, expect, it, vi } from 'vitest';

import { Problem, Rest } from '../link/rest';
import { Sequence, Sync } from '../link/sync';
import type { Order, Position, Security } from '../model/types';
import { LinkStore } from './link.svelte';
import { LOG_MAX, LogStore } from './log.svelte';
import { CHANGES_MAX, OrderStore, isOpen } from './orders.svelte';
import { PortfolioStore } from './portfolio.svelte';
import { PositionStore, totalsOf, valuationAt } from './positions.svelte';
import { LocalBroker, fakeRest, settled } from './testing';
import { TopicStore } from './topics.svelte';
import { TransactionStore } from './transactions.svelte';

const ORDER = `{"intId":"A1","type":"LIMIT","side":"BUY","quantity":100,"limit":232.5,"tif":"DAY","strategyId":0,"strategyName":"SERVER",
  "accountId":1,"securityId":1,"symbol":"AAPL","exchangeId":1,"exchangeOrder":false,"status":"NEW","filledQuantity":0,
  "remainingQuantity":100,"source":"REST","dateTime":"2026-11-15T10:00:00.000000001Z","lastUpdate":"2026-11-15T10:00:00.000000005Z"}`;
/** Nanoseconds of 10:00:00 that day. */
const TEN = 1794736800000000000n;
const status = (seq: number, after: number, rest: string): string =>
  `{"type":"ORDER_STATUS","seq":${seq},"ts":${TEN + BigInt(after)},"intId":"A1","strategyName":"SERVER","securityId":1,"symbol":"AAPL",
  "side":"BUY","quantity":100,"accountId":1,${rest}}`;
const FILLED_40 =
  '"status":"PARTIALLY_FILLED","execType":"F","filledQuantity":40,"remainingQuantity":60,"avgPrice":232.45,"lastQuantity":40,"lastPrice":232.45';

describe('orders', () => {
  let broker: LocalBroker;
  beforeEach(() => {
    broker = new LocalBroker();
  });
  const ordersOf = (open: string | (() => string | Promise<string>), history = '[]'): OrderStore => {
    const orders = new OrderStore(
      fakeRest({ 'GET /rest/execution/order': open, 'GET /rest/ext/order/history?limit=2000': history }),
      broker,
    );
    orders.listen('pitlane');
    return orders;
  };
  const only = (orders: OrderStore): Order => {
    expect(orders.rows).toHaveLength(1);
    return orders.rows[0]!;
  };

  it('start with a snapshot and apply later messages', async () => {
    const orders = ordersOf(`[${ORDER}]`);
    await orders.restart();
    broker.publish('pitlane.SERVER.A1', status(7, 9, FILLED_40));
    await settled();
    expect(only(orders)).toMatchObject({
      status: 'PARTIALLY_FILLED',
      filledQuantity: '40',
      limit: '232.5',
      type: 'LIMIT',
    });
    expect(orders.isComplete).toBe(true);
  });

  it('apply messages that arrived during the snapshot, unless they are older', async () => {
    let answer = (_: string): void => {};
    const orders = ordersOf(() => new Promise<string>((done) => (answer = done)));
    const started = orders.restart();
    broker.publish(
      'pitlane.SERVER.A1',
      status(3, 2, '"status":"PENDING_NEW","execType":"A","filledQuantity":0,"remainingQuantity":100'),
    );
    broker.publish('pitlane.SERVER.A1', status(8, 9, FILLED_40));
    expect(orders.rows).toHaveLength(0);
    answer(`[${ORDER}]`);
    await started;
    await settled();
    expect(only(orders).status).toBe('PARTIALLY_FILLED');
  });

  it('ignore a message older than the snapshot', async () => {
    const orders = ordersOf(`[${ORDER}]`);
    const started = orders.restart();
    broker.publish(
      'pitlane.SERVER.A1',
      status(3, 2, '"status":"PENDING_NEW","execType":"A","filledQuantity":0,"remainingQuantity":100'),
    );
    await started;
    await settled();
    expect(only(orders).status).toBe('NEW');
  });

  it('are read again while a request is pending, because its refusal has no topic', async () => {
    const pending = status(7, 9, '"status":"PENDING_CANCEL","execType":"6","filledQuantity":0,"remainingQuantity":100');
    let now = ORDER.replace('"NEW"', '"PENDING_CANCEL"');
    const orders = new OrderStore(
      fakeRest({
        'GET /rest/execution/order': `[${ORDER}]`,
        'GET /rest/ext/order/history?limit=2000': '[]',
        'GET /rest/execution/order/A1': () => `[${now}]`,
        'DELETE /rest/execution/order/A1?accountId=1': '',
      }),
      broker,
    );
    const refused: string[] = [];
    orders.onTurnedDown = (order, what) => refused.push(`${what} ${order.intId} ${order.status}`);
    orders.listen('pitlane');
    await orders.restart();
    await settled();
    await orders.cancel(only(orders));
    broker.publish('pitlane.SERVER.A1', pending);
    // The venue has not answered at the first two checks.
    for (let check = 0; check < 2; check++) await orders.followPending();
    await settled();
    expect([only(orders).status, refused]).toEqual(['PENDING_CANCEL', []]);
    now = ORDER;
    await orders.followPending();
    await settled();
    expect([only(orders).status, refused]).toEqual(['NEW', ['Cancel A1 NEW']]);
    // The order of another client is read again too, and its refusal is not one of this page.
    broker.publish('pitlane.SERVER.A1', pending.replace('"seq":7', '"seq":8'));
    for (let check = 0; check < 2; check++) await orders.followPending();
    await settled();
    expect([only(orders).status, refused.length]).toEqual(['NEW', 1]);
  });

  it('of this page are reported if they are turned down, at once or after the response', async () => {
    const answers: Record<string, string> = {
      'GET /rest/execution/order': '[]',
      'GET /rest/ext/order/history?limit=2000': '[]',
      'POST /rest/execution/order/limit': ORDER,
    };
    const orders = new OrderStore(fakeRest(answers), broker);
    const reported: string[] = [];
    orders.onTurnedDown = ({ intId, reason }) => reported.push(`${intId} ${reason}`);
    orders.listen('pitlane');
    await orders.restart();
    const message = (id: string): string =>
      ORDER.replace('"type"', '"orderType"')
        .replace('{', `{"type":"ORDER","seq":9,"ts":${TEN + 6n},`)
        .replace('A1', id);
    const end = (id: string, reason: string, after: number): string =>
      status(
        9 + after,
        9 + after,
        `"status":"CANCELED","execType":"4","filledQuantity":0,"remainingQuantity":0,"reason":"${reason}"`,
      ).replace('A1', id);
    expect((await orders.submit('LIMIT', {}))?.intId).toBe('A1');
    broker.publish('order.SERVER.A1', message('A1'));
    for (const again of [0, 1]) broker.publish('pitlane.SERVER.A1', end('A1', 'self-trade', again));
    // Another client has sent this one.
    broker.publish('order.SERVER.A2', message('A2'));
    broker.publish('pitlane.SERVER.A2', end('A2', 'self-trade', 2));
    expect(reported).toEqual(['A1 self-trade']);
    answers['POST /rest/execution/order/limit'] = message('A3').replace('"NEW"', '"REJECTED","reason":"halted"');
    await orders.submit('LIMIT', {});
    // The user cancels this one.
    answers['POST /rest/execution/order/limit'] = message('A4');
    await orders.submit('LIMIT', {});
    broker.publish('order.SERVER.A4', message('A4'));
    broker.publish('pitlane.SERVER.A4', end('A4', 'requested', 3));
    expect(reported).toEqual(['A1 self-trade', 'A3 halted']);
  });

  it('change their id when they are modified', async () => {
    const orders = ordersOf(`[${ORDER}]`);
    await orders.restart();
    broker.publish(
      'order.SERVER.A2',
      `{"type":"ORDER","seq":9,"ts":${TEN + 10n},"intId":"A2","origIntId":"A1","orderType":"LIMIT","side":"BUY",
      "quantity":200,"limit":231,"tif":"DAY","strategyId":0,"strategyName":"SERVER","accountId":1,"securityId":1,"symbol":"AAPL","exchangeId":1,
      "exchangeOrder":false,"status":"NEW","filledQuantity":0,"remainingQuantity":200,"source":"REST",
      "dateTime":"2026-11-15T10:00:00.000000001Z","lastUpdate":"2026-11-15T10:00:00.00000001Z"}`,
    );
    broker.publish(
      'pitlane.SERVER.A2',
      status(9, 10, '"origIntId":"A1","status":"NEW","execType":"5","filledQuantity":0,"remainingQuantity":200')
        .replace('"intId":"A1"', '"intId":"A2"')
        .replace('"quantity":100', '"quantity":200'),
    );
    await settled();
    expect(only(orders)).toMatchObject({
      intId: 'A2',
      origIntId: 'A1',
      quantity: '200',
      limit: '231',
      remainingQuantity: '200',
    });
    expect(only(orders).dateTime).toBe('2026-11-15T10:00:00.000000001Z');
    // The row of a table is the same one.
    expect(only(orders)).toMatchObject({ key: 'A1' });
    expect(orders.changesOf('A1')).toMatchObject([{ status: 'NEW', execType: '5', quantity: '200', limit: '231' }]);
  });

  it('keep a bounded list of their changes', async () => {
    const orders = ordersOf(`[${ORDER}]`);
    await orders.restart();
    for (let n = 0; n < CHANGES_MAX + 5; n++) broker.publish('pitlane.SERVER.A1', status(7 + n, 9 + n, FILLED_40));
    await settled();
    expect(orders.changesOf('A1')).toHaveLength(CHANGES_MAX);
    expect(orders.changesOf('A1')[0]).toMatchObject({ at: '2026-11-15T10:00:00.000000014Z', lastPrice: '232.45' });
    expect(orders.changesOf('B1')).toEqual([]);
  });

  it('have the changes that the service has kept, unless those are of another order with the id', async () => {
    const kept = (dateTime: string): string =>
      `{"intId":"A1","dateTime":"${dateTime}","complete":true,"changes":[{"execType":"NEW","quantity":10}]}`;
    let answer = kept('2026-11-15T10:00:00.000000001Z');
    const rest = fakeRest({
      'GET /rest/execution/order': `[${ORDER}]`,
      'GET /rest/ext/order/history?limit=2000': '[]',
      'GET /rest/ext/order/changes?intId=A1&accountId=1': () => answer,
    });
    const orders = new OrderStore(rest, broker);
    await orders.restart();
    await settled();
    expect(await orders.fetchChanges(only(orders))).toMatchObject({ complete: true, changes: [{ execType: 'NEW' }] });
    answer = kept('2026-11-15T10:00:01Z');
    expect(await orders.fetchChanges(only(orders))).toMatchObject({ complete: false, changes: [] });
  });

  it('tell their senders over REST, even if another client has used the id', async () => {
    const other = ORDER.replace('10:00:00.000000001Z', '09:00:00Z');
    const sent = ORDER.replace('"source"', '"sentBy":{"login":"eve","protocol":"REST"},"source"');
    const orders = new OrderStore(fakeRest({ 'GET /rest/execution/order/A1': `[${other},${sent}]` }), broker);
    expect((await orders.fetch(JSON.parse(ORDER) as Order))?.sentBy?.login).toBe('eve');
  });

  it('fetch a snapshot when a status names an unknown order', async () => {
    const answers = ['[]', `[${ORDER}]`];
    const orders = ordersOf(() => answers.shift() ?? '[]');
    await orders.restart();
    broker.publish('pitlane.SERVER.A1', status(7, 3, FILLED_40));
    await vi.waitFor(() => expect(orders.isComplete).toBe(false));
    await vi.waitFor(() => expect(orders.isComplete).toBe(true));
    expect(only(orders).intId).toBe('A1');
  });

  it('fetch a snapshot when sequence numbers decrease after a restart of the service', async () => {
    let fetched = 0;
    const orders = ordersOf(() => (fetched++, `[${ORDER}]`));
    await orders.restart();
    broker.publish('pitlane.SERVER.A1', status(70, 9, FILLED_40));
    broker.publish('pitlane.SERVER.A1', status(3, 10, FILLED_40));
    await settled();
    await vi.waitFor(() => expect(orders.isComplete).toBe(true));
    expect(fetched).toBe(2);
    expect(orders.isComplete).toBe(true);
  });

  it('are not open in a final status', () => {
    const order = JSON.parse(ORDER) as Order;
    expect(isOpen(order)).toBe(true);
    for (const over of ['FILLED', 'CANCELED', 'REJECTED', 'EXPIRED'] as const)
      expect(isOpen({ ...order, status: over })).toBe(false);
  });

  it('are submitted with the order type in the path and decimals as numbers', async () => {
    const sent: [string, string][] = [];
    const rest = new Rest(
      '',
      async (input, init) => (sent.push([String(input), String(init?.body)]), new Response(ORDER)),
    );
    const orders = new OrderStore(rest, broker);
    expect(
      (await orders.submit('STOP_LIMIT', { securityId: 1, quantity: '10', limit: '1.10', stop: '1' }))?.intId,
    ).toBe('A1');
    expect(sent).toEqual([['/rest/execution/order/stoplimit', '{"securityId":1,"quantity":10,"limit":1.10,"stop":1}']]);
  });
});

describe('Sync and Sequence', () => {
  it('retry a failed snapshot and then apply queued messages', async () => {
    vi.useFakeTimers();
    let tries = 0;
    const applied: number[] = [];
    const sync = new Sync<number>({
      snapshot: async () => {
        if (++tries < 3) throw Problem.unreachable();
        return () => applied.push(0);
      },
      apply: (message) => applied.push(message),
      draw: () => {},
    });
    sync.handle(1);
    const done = sync.restart();
    await vi.advanceTimersByTimeAsync(5_000);
    await done;
    sync.handle(2);
    await vi.runAllTimersAsync();
    expect([tries, applied]).toEqual([3, [0, 1, 2]]);
    vi.useRealTimers();
  });

  it('accept gaps, reject decreasing numbers, and start again after a reset', () => {
    const sequence = new Sequence();
    expect([sequence.follows(1, 5), sequence.follows(1, 9), sequence.follows(1, 9), sequence.follows(1, 8)]).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(sequence.follows(2, 1)).toBe(true);
    sequence.reset();
    expect(sequence.follows(1, 1)).toBe(true);
  });
});

describe('positions', () => {
  const position = {
    id: 1,
    strategyId: 0,
    strategyName: 'SERVER',
    securityId: 1,
    quantity: '-3',
    avgPrice: '10',
    realizedPL: '0',
  } as Position;
  const security = { contractSize: '50' } as Security;
  const quote = { bid: '11', ask: '12', last: '11.5' } as never;

  it('are valued like in the service', () => {
    expect(valuationAt(position, quote, security)).toEqual({
      marketPrice: '12',
      marketValue: '-1800',
      unrealizedPL: '-300',
    });
    expect(valuationAt({ ...position, quantity: '3' }, quote, security)).toEqual({
      marketPrice: '11',
      marketValue: '1650',
      unrealizedPL: '150',
    });
    expect(valuationAt({ ...position, quantity: '0' }, quote, security).unrealizedPL).toBe('0');
  });

  it('have totals by currency, the base currency first', () => {
    const rows = [
      { ...position, currency: 'CHF', realizedPL: '1.5' },
      { ...position, currency: 'USD', realizedPL: '-2' },
      { ...position, currency: 'USD', realizedPL: '0.25' },
    ];
    expect(totalsOf(rows, (row) => valuationAt(row, quote, security), 'USD')).toEqual([
      { currency: 'USD', count: 2, value: '-3600', unrealized: '-600', realized: '-1.75' },
      { currency: 'CHF', count: 1, value: '-1800', unrealized: '-300', realized: '1.5' },
    ]);
  });

  it('show the newest image', async () => {
    const broker = new LocalBroker();
    const positions = new PositionStore(
      fakeRest({ 'GET /rest/position': '[{"id":1,"quantity":5,"securityId":1,"strategyName":"SERVER"}]' }),
      broker,
    );
    await positions.restart();
    broker.publish(
      'position.SERVER.1',
      '{"type":"POSITION","seq":1,"ts":1,"id":1,"strategyName":"SERVER","securityId":1,"quantity":8.5,"realizedPL":0}',
    );
    await settled();
    expect(positions.of('SERVER', 1)?.quantity).toBe('8.5');
  });
});

describe('transactions', () => {
  it('are counted once, whether they come from REST or from a topic', async () => {
    const broker = new LocalBroker();
    const body =
      '"id":4,"uuid":"u","dateTime":"2026-11-15T10:00:00Z","strategyId":0,"accountId":1,"price":1.50,"commission":0,"currency":"USD"';
    const transactions = new TransactionStore(
      fakeRest({ 'GET /rest/transaction/daily?limit=5000': `[{"type":"BUY",${body}}]` }),
      broker,
    );
    await transactions.restart();
    broker.publish('transaction.SERVER', `{"type":"TRANSACTION","seq":1,"ts":1,"transactionType":"BUY",${body}}`);
    await settled();
    expect(transactions.rows).toMatchObject([{ id: 4, type: 'BUY', price: '1.50' }]);
  });
});

describe('the log', () => {
  it('keeps at most LOG_MAX events and counts unseen errors', async () => {
    const broker = new LocalBroker();
    const log = new LogStore(fakeRest({}), broker);
    for (let n = 0; n < LOG_MAX + 10; n++) {
      broker.publish(
        'log-event.error',
        `{"type":"LOG_EVENT","seq":0,"ts":"${n}","level":"ERROR","logger":"l","message":"m${n}","fields":{}}`,
      );
    }
    await settled();
    expect([log.rows.length, log.rows[0]?.message]).toEqual([LOG_MAX, `m${LOG_MAX + 9}`]);
    expect(log.unseen).toBeGreaterThan(0);
    log.markSeen();
    expect(log.unseen).toBe(0);
  });
});

describe('what the service has kept', () => {
  const event = (ts: number, text: string): string =>
    `"ts":"${ts}","level":"ERROR","logger":"l","message":"${text}","fields":{}`;

  it('shows log events from before the page was opened, and each once', async () => {
    const broker = new LocalBroker();
    const past = `[{"dateTime":"2026-11-15T10:00:00Z",${event(3, 'c')}},{${event(2, 'b')}},{${event(1, 'a')}}]`;
    const log = new LogStore(fakeRest({ 'GET /rest/ext/log': past }), broker);
    broker.publish('log-event.error', `{"type":"LOG_EVENT","seq":0,${event(3, 'c')}}`);
    await log.restart();
    broker.publish('log-event.error', `{"type":"LOG_EVENT","seq":1,${event(4, 'd')}}`);
    await settled();
    expect(log.rows.map(({ message }) => message)).toEqual(['d', 'c', 'b', 'a']);
    // What the user has cleared does not return with a new connection.
    log.clear();
    await log.restart();
    expect(log.rows).toEqual([]);
  });

  it('changes the portfolio, the profit of the day and the charts together', async () => {
    let second = 0;
    const rest = fakeRest({
      'GET /rest/ext/portfolio': () =>
        `{"baseCurrency":"USD","netLiquidationValue":${second},"holdings":[],"missing":[]}`,
      'GET /rest/ext/profit': () => `{"tradingDay":"2026-11-18","total":{"netPL":${second}}}`,
    });
    const portfolio = new PortfolioStore(rest, () => 0);
    const shown = (): unknown[] => [portfolio.now?.netLiquidationValue, portfolio.profit?.total.netPL];
    expect(shown()).toEqual([undefined, undefined]);
    for (const together of [1, 2, 3]) {
      second += 1;
      await portfolio.refresh();
      expect(shown()).toEqual([String(together), String(together)]);
      expect(portfolio.points.at(-1)?.worth).toBe(together);
    }
    expect(portfolio.points).toHaveLength(3);
  });

  it('shows the portfolio of a service that gives no profit', async () => {
    const now = '{"baseCurrency":"USD","netLiquidationValue":101,"holdings":[],"missing":[]}';
    const portfolio = new PortfolioStore(fakeRest({ 'GET /rest/ext/portfolio': now }), () => 0);
    await portfolio.refresh();
    expect([portfolio.now?.netLiquidationValue, portfolio.profit, portfolio.profitError]).toEqual([
      '101',
      null,
      'nothing here',
    ]);
  });

  it('begins the curve with the values from before the page was opened', async () => {
    const past = '[{"dateTime":"2026-11-15T10:00:00Z","netLiquidationValue":100.5,"realizedPL":2,"unrealizedPL":-0.5}]';
    const now =
      '{"baseCurrency":"USD","netLiquidationValue":101,"realizedPL":3,"unrealizedPL":0,"holdings":[],"missing":[]}';
    const rest = fakeRest({ 'GET /rest/ext/portfolio': now, 'GET /rest/ext/portfolio/history': past });
    const portfolio = new PortfolioStore(rest, () => 7);
    await portfolio.refresh();
    await settled();
    await portfolio.refresh();
    expect(portfolio.points.map(({ worth, pl, gross }) => [worth, pl, gross])).toEqual([
      [100.5, 1.5, null],
      [101, 3, 7],
      [101, 3, 7],
    ]);
  });
});

describe('the topic browser', () => {
  it('counts messages by topic until the pattern is removed', async () => {
    const broker = new LocalBroker();
    const topics = new TopicStore(broker);
    expect(topics.add('a..b')).not.toBeNull();
    expect(topics.add('tick.*')).toBeNull();
    broker.publish('tick.1', '{}');
    broker.publish('tick.1', '{}');
    broker.publish('tick.2', '{}');
    await settled();
    expect(topics.counts.map(({ topic, count }) => [topic, count])).toEqual([
      ['tick.1', 2],
      ['tick.2', 1],
    ]);
    topics.remove('tick.*');
    broker.publish('tick.1', '{}');
    await settled();
    expect(topics.total).toBe(3);
  });
});

describe('the login', () => {
  it('has every role if the service has no identity call', async () => {
    const link = new LinkStore(fakeRest({}));
    await link.loadIdentity();
    expect(link.hasRole('admin')).toBe(true);
  });

  it('has the role that the service returns', async () => {
    const link = new LinkStore(fakeRest({ 'GET /rest/ext/identity': '{"name":"eve","role":"read"}' }));
    await link.loadIdentity();
    expect([link.hasRole('read'), link.hasRole('trade')]).toEqual([true, false]);
  });

  it('is requested when the service requires one', async () => {
    const rest = new Rest('', async (_, init) =>
      new Headers(init?.headers).get('Authorization') === `Basic ${btoa('eve:s')}`
        ? new Response('{"name":"eve","role":"trade"}')
        : new Response('{"code":"login-required","detail":"this takes a login"}', { status: 401 }),
    );
    const link = new LinkStore(rest);
    await link.loadIdentity();
    expect([link.loginNeeded, link.identity]).toEqual([true, null]);
    expect(await link.login({ login: 'eve', password: 'wrong' })).toBe(false);
    expect(link.loginError).toBe('this takes a login');
    expect(await link.login({ login: 'eve', password: 's' })).toBe(true);
    expect([link.loginNeeded, link.hasRole('trade'), rest.connectHeaders()]).toEqual([
      false,
      true,
      { login: 'eve', passcode: 's' },
    ]);
  });
});
