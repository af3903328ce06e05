import { beforeEach, describe, expect, it, vi } from 'vitest';

import { OLD_MS, STALE_MS, ageText, freshness } from '../model/age';
import { ClockStore } from './clock.svelte';
import { LinkStore, QUIET_MS } from './link.svelte';
import { MarketStore } from './market.svelte';
import { spreadOf } from './quote.svelte';
import { ReferenceStore } from './reference.svelte';
import { LocalBroker, fakeRest, settled } from './testing';

const security = (id: number, symbol: string): string =>
  `{"id":${id},"symbol":"${symbol}","description":"","type":"STOCK","securityFamilyId":1,"exchangeId":1,"currency":"USD","tickSize":0.01,"lotSize":1,"contractSize":1,"tradeable":true}`;
const SECURITIES = `[${security(1, 'AAPL')},${security(2, 'AAPL280121C00250000')}]`;
const tick = (seq: number, bid: string, ask: string, ts = '1'): string =>
  `{"type":"TICK","seq":${seq},"ts":${ts},"securityId":1,"bid":${bid},"bidSize":1,"ask":${ask},"askSize":2,"last":${bid},"lastSize":1,"volume":5,"dateTime":"2026-11-15T10:00:00Z"}`;
const book = (id: number, bid: string, ask: string): string =>
  `{"type":"BOOK","seq":1,"ts":7,"securityId":${id},"symbol":"S","feed":"SIM","bids":[{"price":${bid},"size":5}],"asks":[{"price":${ask},"size":6}],"dateTime":"2026-11-15T10:00:00Z"}`;

describe('the market', () => {
  let broker: LocalBroker;
  let focus: LocalBroker;
  let market: MarketStore;
  let reference: ReferenceStore;
  let answers: Record<string, string>;
  beforeEach(async () => {
    broker = new LocalBroker();
    focus = new LocalBroker();
    answers = { 'GET /rest/security': SECURITIES, 'GET /rest/exchange': '[]', 'GET /rest/account': '[]' };
    const rest = fakeRest(answers);
    reference = new ReferenceStore(rest);
    market = new MarketStore(rest, broker, focus, reference);
    await reference.load();
    market.createQuotes();
  });
  /** Topics of ticks that the main connection is subscribed to. */
  const topics = (): string[] => broker.patterns.filter((pattern) => pattern.startsWith('tick.'));

  it('shows the newest tick exactly, and never an older one', async () => {
    market.want('rows', [1]);
    broker.publish('tick.1', tick(5, '90071992.54740993', '90071992.54740995'));
    await settled();
    const quote = market.quote(1)!;
    expect(quote.tick?.bid).toBe('90071992.54740993');
    expect(spreadOf(quote.tick)).toBe('0.00000002');
    broker.publish('tick.1', tick(7, '11', '12'));
    broker.publish('tick.1', tick(6, '13', '14'));
    await vi.waitFor(() => expect(quote.tick?.bid).toBe('11'));
    expect(market.ticksReceived).toBe(3);
    expect(reference.security(1)?.tickSize).toBe('0.01');
    expect(quote.change).toBe('-90071981.54740993');
    expect(quote.changePct).toBeCloseTo(-100);
    expect(quote.candles.of('1s')).toMatchObject([{ high: Number('90071992.54740993'), low: 11, close: 11 }]);
    market.reset();
    broker.publish('tick.1', tick(1, '12', '13'));
    await vi.waitFor(() => expect(quote.tick?.bid).toBe('12'));
  });

  it('measures changes by the previous close, or else by the first price of the day', async () => {
    market.want('rows', [1]);
    answers['GET /rest/ext/quote'] = '[{"securityId":1,"volume":5,"open":8}]';
    await market.loadBases();
    const quote = market.quote(1)!;
    broker.publish('tick.1', tick(5, '10', '11'));
    await vi.waitFor(() => expect(quote.tick?.last).toBe('10'));
    expect([quote.change, quote.changePct, quote.basePrice]).toEqual(['2', 25, { price: '8', isClose: false }]);
    answers['GET /rest/ext/quote'] =
      '[{"securityId":1,"volume":5,"open":8,"previousClose":12.5},{"securityId":99,"volume":0}]';
    await market.loadBases();
    expect([quote.change, quote.changePct, quote.basePrice]).toEqual(['-2.5', -20, { price: '12.5', isClose: true }]);
    // A service that does not answer changes nothing.
    delete answers['GET /rest/ext/quote'];
    await market.loadBases();
    expect(quote.change).toBe('-2.5');
  });

  it('loads the past bars of a security once per connection, and again after a failure', async () => {
    const quote = market.quote(1)!;
    const path = 'GET /rest/ext/bars?securityId=1&interval=1s&limit=480';
    const bar = (second: number, price: number): string =>
      `{"securityId":1,"dateTime":"2026-11-15T10:00:0${second}Z","open":${price},"high":${price},"low":${price},"close":${price},"volume":1,"trades":1,"complete":true}`;
    await market.loadHistory(quote, '1s');
    expect(quote.candles.of('1s')).toEqual([]);
    answers[path] = `[${bar(0, 7)},${bar(1, 8)}]`;
    await market.loadHistory(quote, '1s');
    const closes = (): number[] => quote.candles.of('1s').map((one) => one.close);
    expect(closes()).toEqual([7, 8]);
    answers[path] = `[${bar(0, 7)},${bar(1, 8)},${bar(2, 9)}]`;
    await market.loadHistory(quote, '1s');
    expect(closes()).toEqual([7, 8]);
    market.reset();
    await market.loadHistory(quote, '1s');
    expect(closes()).toEqual([7, 8, 9]);
  });

  it('counts the volume of bars by that of the day, which starts again', async () => {
    const quote = market.quote(1)!;
    market.want('rows', [1]);
    [100, 103, 103, 2].forEach((volume, at) =>
      broker.publish('tick.1', tick(at + 1, '10', '11').replace(/"volume":\d+/, `"volume":${volume}`)),
    );
    expect(quote.candles.of('1s').reduce((sum, bar) => sum + bar.volume, 0)).toBe(5);
  });

  it('does not parse a tick that a newer one replaced before it was drawn', async () => {
    market.want('rows', [1]);
    broker.publish('tick.1', '{"type":"TICK","seq":1,"cut off');
    broker.publish('tick.1', tick(2, '11', '12'));
    await vi.waitFor(() => expect(market.quote(1)?.tick?.bid).toBe('11'));
  });

  it('listens to the securities that are shown, and to no others', async () => {
    market.want('rows', [1, 2]);
    expect(topics()).toEqual(['tick.1', 'tick.2']);
    market.want('rows', [2]);
    market.want('positions', [1]);
    await vi.waitFor(() => expect(topics()).toEqual(['tick.1', 'tick.2']));
    market.want('positions', []);
    await vi.waitFor(() => expect(topics()).toEqual(['tick.2']));
    market.wantAll(true);
    await vi.waitFor(() => expect(topics()).toEqual(['tick.*']));
    market.wantAll(false);
    await vi.waitFor(() => expect(topics()).toEqual(['tick.2']));
  });

  it('has a connection of its own for the selected security', () => {
    market.select(1);
    expect(focus.patterns).toEqual(['book.1', 'tick.1']);
    market.select(2);
    expect(focus.patterns).toEqual(['book.2', 'tick.2']);
    market.select(null);
    expect(focus.patterns).toEqual([]);
    expect(topics()).toEqual([]);
  });

  it('shows the newest depth of the selected security only', async () => {
    market.select(1);
    focus.publish('book.1', book(1, '90071992.54740993', '90071992.54740995'));
    focus.publish('book.2', book(2, '7', '8'));
    await settled();
    expect(market.book?.bids).toEqual([{ price: '90071992.54740993', size: '5' }]);
    focus.publish('book.1', book(1, '11', '12'));
    focus.publish('book.1', book(1, '12', '13'));
    await vi.waitFor(() => expect(market.book?.bids[0]?.price).toBe('12'));
    market.select(2);
    focus.publish('book.1', book(1, '13', '14'));
    await settled();
    expect(market.book).toBeUndefined();
  });

  it('takes the best prices of the selected security from one message', async () => {
    market.select(1);
    focus.publish('tick.1', tick(5, '11', '12'));
    await vi.waitFor(() => expect(market.top?.bid?.price).toBe('11'));
    expect(market.top).toEqual({ bid: { price: '11', size: '1' }, ask: { price: '12', size: '2' }, ts: '1' });
    focus.publish('book.1', book(1, '12', '13'));
    await vi.waitFor(() => expect(market.top?.bid?.price).toBe('12'));
    // A tick that arrives later does not mix with the book.
    focus.publish('tick.1', tick(6, '9', '10'));
    await vi.waitFor(() => expect(market.selectedTick?.last).toBe('9'));
    expect(market.selectedTick).toMatchObject({ bid: '12', bidSize: '5', ask: '13', askSize: '6', last: '9' });
    expect(market.top?.ts).toBe('7');
  });

  it('has columns that show each symbol completely', () => {
    expect(reference.symbolWidth).toBeGreaterThan('AAPL280121C00250000'.length * 7);
  });
});

describe('the age of a price', () => {
  it('is shown in grey first and with a sign later', () => {
    expect([0, OLD_MS - 1, OLD_MS, STALE_MS - 1, STALE_MS].map(freshness)).toEqual([
      'fresh',
      'fresh',
      'old',
      'old',
      'stale',
    ]);
    expect(freshness(undefined)).toBe('fresh');
    expect([undefined, 9_999, 12_345, 59_999, 60_000, 3_599_000, 7_200_000, 200_000_000].map(ageText)).toEqual([
      '',
      '',
      '12 s',
      '59 s',
      '! 1 min',
      '! 59 min',
      '! 2 h',
      '! 2 d',
    ]);
  });

  it('is measured by the clock of the service', () => {
    const clock = new ClockStore();
    const local = Date.parse('2026-11-15T10:00:00Z');
    clock.tick(local);
    expect(clock.age(`${local - 5_000}000000`)).toBe(5_000);
    expect(clock.age(undefined)).toBeUndefined();
    // A difference below the precision of the header is ignored, a larger one is not.
    clock.learn('Sun, 15 Nov 2026 10:00:00 GMT', local);
    clock.tick(local);
    expect(clock.age(`${local}000000`)).toBe(0);
    clock.learn('Sun, 15 Nov 2026 10:01:00 GMT', local);
    clock.tick(local);
    expect(clock.age(`${local}000000`)).toBe(61_000);
    clock.learn('not a date', local);
    clock.learn(null, local);
    clock.tick(local);
    expect(clock.age(`${local}000000`)).toBe(61_000);
    clock.learn('Sun, 15 Nov 2026 10:00:00 GMT', local);
    clock.tick(local);
    expect(clock.age(`${local}000000`)).toBe(0);
  });
});

describe('heart-beats', () => {
  it('are missed while the connection is up, and after two seconds', () => {
    const link = new LinkStore(fakeRest({}));
    link.observeSilence(QUIET_MS);
    expect(link.quietS).toBe(0);
    link.up();
    link.observeSilence(QUIET_MS - 1);
    expect(link.quietS).toBe(0);
    link.observeSilence(3_700);
    expect(link.quietS).toBe(3);
    link.observeSilence(100);
    expect(link.quietS).toBe(0);
    link.observeSilence(5_000);
    link.down('');
    expect(link.quietS).toBe(0);
  });
});
