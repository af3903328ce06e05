// Prices. A tick is a full image, so only the newest of each security matters, and all are drawn
// together.
//
// The service limits market data per connection, so the page listens only to securities that it
// shows, and has a second connection for the selected one:
//
//   rows in sight, open positions ── tick.<id> ──────────────────► broker
//   the selected security ────────── tick.<id> and book.<id> ────► focus broker
//
// Both may deliver the same tick; the sequence number orders them.

import type { Broker } from '../link/broker';
import { afterPaint, atNextFrame, throttled } from '../link/frame';
import type { Rest } from '../link/rest';
import { type BarLength, historyRequest } from '../model/candles';
import type { Decimal } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Book, DayQuote, HistoryBar, Level, SubscriptionMessage, Tick } from '../model/types';
import { Quote } from './quote.svelte';
import type { ReferenceStore } from './reference.svelte';

/**
 * Interval between two drawings: people cannot read numbers that change more than twenty times a
 * second.
 */
export const DRAW_MS = 50;
/** Interval over which the rate is counted. */
const RATE_MS = 1_000;
/** Interval at which the closes of the trading day before are read: a day may begin meanwhile. */
const BASE_MS = 300_000;
/** Delay before subscriptions follow the rows in sight, because scrolling passes many rows. */
const FOLLOW_MS = 100;
const ALL = 'tick.*';

/** Parts of the page that show prices of securities. */
export type PriceUser = 'rows' | 'positions';

/** The best prices of a security, all of one message. */
export interface TopOfBook {
  bid?: Level;
  ask?: Level;
  /** Time of the message in nanoseconds since the epoch, as text. */
  ts: string;
}

export class MarketStore {
  quotes: Quote[] = $state.raw([]);
  /** Depth of the selected security, if its venue provides it. */
  book: Book | undefined = $state.raw();
  /** Ticks received in the last second. */
  rate = $state(0);
  /** Whether a price has been painted. */
  hasPrices = $state(false);
  ticksReceived = 0;

  private selectedId: number | null = $state(null);
  private byId = new Map<number, Quote>();
  /** Quotes with a tick that is not drawn yet. */
  private readonly changed: Quote[] = [];
  private bookReceived: string | undefined;
  private unsubscribeFocus: () => void = () => {};
  private readonly wanted = new Map<PriceUser, readonly number[]>();
  private wantsAll = false;
  /** Functions that end subscriptions, by topic. */
  private readonly subscriptions = new Map<string, () => void>();
  private followTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly scheduleDraw = throttled(() => this.draw(), DRAW_MS);

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
    private readonly focusBroker: Broker,
    private readonly reference: ReferenceStore,
  ) {
    broker.listen('subscription.>', (_, body) => this.handleSubscription(parseJson(body) as SubscriptionMessage));
  }

  /** Starts counting the rate and following the trading days. The page calls it once. */
  watch(): () => void {
    let before = 0;
    const timer = setInterval(() => {
      this.rate = this.ticksReceived - before;
      before = this.ticksReceived;
    }, RATE_MS);
    const bases = setInterval(() => void this.loadBases(), BASE_MS);
    return () => {
      clearInterval(timer);
      clearInterval(bases);
    };
  }

  /** Reads the prices that changes are relative to. A service without a history has none. */
  async loadBases(): Promise<void> {
    try {
      for (const row of await this.rest.get<DayQuote[]>('/rest/ext/quote')) {
        this.byId.get(row.securityId)?.setBase(row.previousClose, row.open);
      }
    } catch {
      // Changes are then relative to the first price that the page receives.
    }
  }

  /** Reads the past bars of a security, once per connection. */
  async loadHistory(quote: Quote, length: BarLength): Promise<void> {
    if (!quote.needsHistory(length)) return;
    const { interval, limit } = historyRequest(length);
    try {
      const path = `/rest/ext/bars?securityId=${quote.id}&interval=${interval}&limit=${limit}`;
      const rows = await this.rest.get<HistoryBar[]>(path);
      const bars = rows.map(({ dateTime, open, high, low, close, volume }) => ({
        time: Date.parse(dateTime) / 1000,
        open: Number(open),
        high: Number(high),
        low: Number(low),
        close: Number(close),
        volume: Number(volume),
      }));
      quote.addHistory(length, bars);
    } catch {
      // The chart then begins with the first price that the page receives.
      quote.forgetHistory(length);
    }
  }

  /**
   * Creates a quote for each security after reference data has arrived. Existing quotes keep their
   * prices.
   */
  createQuotes(): void {
    const quotes = this.reference.securities.map((security) => this.byId.get(security.id) ?? new Quote(security));
    this.byId = new Map(quotes.map((quote) => [quote.id, quote]));
    // Draws rows and their prices in the same frame.
    atNextFrame(() => this.draw());
    this.quotes = quotes;
    void this.loadBases();
  }

  /** Discards the state of the previous connection. */
  reset(): void {
    for (const quote of this.byId.values()) quote.reset();
    this.book = undefined;
    this.bookReceived = undefined;
  }

  quote(id: number | null | undefined): Quote | undefined {
    void this.quotes;
    return id === null || id === undefined ? undefined : this.byId.get(id);
  }

  /**
   * The best prices of the selected security: of its book, or of its tick if the venue provides no
   * depth. Order form and depth both show these, so that they never contradict each other.
   */
  readonly top: TopOfBook | undefined = $derived.by(() => {
    const { book } = this;
    if (book && book.securityId === this.selectedId) return { bid: book.bids[0], ask: book.asks[0], ts: book.ts };
    const tick = this.quote(this.selectedId)?.tick;
    return tick && { bid: level(tick.bid, tick.bidSize), ask: level(tick.ask, tick.askSize), ts: tick.ts };
  });

  /** The tick of the selected security, with the best prices of `top`. */
  readonly selectedTick: Tick | undefined = $derived.by(() => {
    const tick = this.quote(this.selectedId)?.tick;
    const { top } = this;
    if (!tick || !top) return tick;
    const [bid, bidSize, ask, askSize] = [top.bid?.price, top.bid?.size, top.ask?.price, top.ask?.size];
    return { ...tick, bid, bidSize, ask, askSize };
  });

  /** Selects the security whose tick and depth have a connection of their own. */
  select(securityId: number | null): void {
    this.unsubscribeFocus();
    this.selectedId = securityId;
    this.book = undefined;
    this.bookReceived = undefined;
    if (securityId === null) return;
    const options = { lastValue: true };
    const ends = [
      this.focusBroker.listen(`tick.${securityId}`, this.handleTick, options),
      this.focusBroker.listen(`book.${securityId}`, this.handleBook, options),
    ];
    this.unsubscribeFocus = () => ends.forEach((end) => end());
  }

  /** Sets the securities of which a part of the page shows prices. */
  want(user: PriceUser, ids: readonly number[]): void {
    this.wanted.set(user, ids);
    // The first rows are subscribed to at once, so that prices appear early.
    if (this.subscriptions.size === 0) this.follow();
    else this.followTimer ??= setTimeout(() => this.follow(), FOLLOW_MS);
  }

  /** Listens to all securities, for a table that is sorted by price. */
  wantAll(on: boolean): void {
    this.wantsAll = on;
    this.followTimer ??= setTimeout(() => this.follow(), FOLLOW_MS);
  }

  async subscribe(securityId: number, strategyName: string, subscribe: boolean): Promise<void> {
    const verb = subscribe ? 'subscribe' : 'unsubscribe';
    await this.rest.put(`/rest/subscription/marketdata/${verb}`, { body: { strategyName, securityId, subscribe } });
    const quote = this.byId.get(securityId);
    if (quote && subscribe) quote.subscribed = true;
  }

  /** Subscribes to the topics that are wanted now, and to no others. */
  private follow(): void {
    clearTimeout(this.followTimer);
    this.followTimer = undefined;
    const ids = [...this.wanted.values()].flat();
    const topics = new Set(this.wantsAll ? [ALL] : ids.map((id) => `tick.${id}`));
    for (const [topic, end] of this.subscriptions) {
      if (topics.has(topic)) continue;
      end();
      this.subscriptions.delete(topic);
    }
    for (const topic of topics) {
      if (this.subscriptions.has(topic)) continue;
      this.subscriptions.set(topic, this.broker.listen(topic, this.handleTick, { lastValue: true }));
    }
  }

  private readonly handleTick = (topic: string, body: string): void => {
    this.ticksReceived++;
    const quote = this.byId.get(Number(topic.slice('tick.'.length)));
    if (!quote?.handle(body)) return;
    this.changed.push(quote);
    this.scheduleDraw();
  };

  private readonly handleBook = (_: string, body: string): void => {
    this.bookReceived = body;
    this.scheduleDraw();
  };

  private handleSubscription(message: SubscriptionMessage): void {
    const quote = this.byId.get(message.securityId);
    if (quote) quote.subscribed = message.subscribers > 0;
  }

  private draw(): void {
    if (this.changed.length > 0 && !this.hasPrices) afterPaint(() => (this.hasPrices = true));
    for (const quote of this.changed) quote.show();
    this.changed.length = 0;
    if (this.bookReceived) this.book = parseJson(this.bookReceived) as Book;
    this.bookReceived = undefined;
  }
}

function level(price: Decimal | undefined, size: Decimal | undefined): Level | undefined {
  return price === undefined || size === undefined ? undefined : { price, size };
}
