// Prices. A tick is a full image, so only the newest of each security counts, and all of them are drawn in one go.

import type { Broker } from '../link/broker';
import { afterPaint, atNextFrame, throttled } from '../link/frame';
import type { Rest } from '../link/rest';
import type { Decimal } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Book, SubscriptionMessage } from '../model/types';
import { Quote } from './quote.svelte';
import type { ReferenceStore } from './reference.svelte';

/** Between two drawings of prices: nobody reads numbers that change more often than twenty times a second. */
export const DRAW_MS = 50;
/** Rates are counted over so long. */
const RATE_MS = 1_000;
/** Ticks kept while the securities are on their way: a second or two of a busy market. What is lost comes again. */
const EARLY_MAX = 10_000;
const OPENING_KEY = 'pitlane.opening';
/** Between the first prices of a day and saveTimer them: they come one after the other. */
const SAVE_MS = 1_000;

export class MarketStore {
  quotes: Quote[] = $state.raw([]);
  /** Of the chosen security, where its venue gives depth. */
  book: Book | undefined = $state.raw();
  /** Ticks heard in the last second. */
  rate = $state(0);
  /** Whether any has been painted yet. */
  hasPrices = $state(false);
  ticksReceived = 0;

  private byId = new Map<number, Quote>();
  /** Ticks that came before the securities. */
  private early: [number, string][] = [];
  /** Quotes that have something to show. */
  private readonly changed: Quote[] = [];
  private bookReceived: string | undefined;
  private unsubscribeBook: () => void = () => {};
  private saveTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly scheduleDraw = throttled(() => this.draw(), DRAW_MS);

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
    private readonly reference: ReferenceStore,
  ) {
    broker.listen('tick.*', (topic, body) => this.handle(Number(topic.slice('tick.'.length)), body), { lastValue: true });
    broker.listen('subscription.>', (_, body) => this.handleSubscription(parseJson(body) as SubscriptionMessage));
  }

  /** Counts the rate; the page calls it once, tests need not. */
  watch(): () => void {
    let before = 0;
    const timer = setInterval(() => {
      this.rate = this.ticksReceived - before;
      before = this.ticksReceived;
    }, RATE_MS);
    return () => clearInterval(timer);
  }

  /** After reference data have come: a row for each security; prices already here stay. */
  createQuotes(): void {
    const openings = loadOpenings();
    const quotes = this.reference.securities.map(
      (security) => this.byId.get(security.id) ?? new Quote(security, openings[security.id]),
    );
    this.byId = new Map(quotes.map((quote) => [quote.id, quote]));
    for (const [id, body] of this.early) this.applyTick(id, body);
    this.early = [];
    // Rows and their prices appear together.
    atNextFrame(() => this.draw());
    this.quotes = quotes;
  }

  /** A connection begins. */
  reset(): void {
    for (const quote of this.byId.values()) quote.reset();
    this.early = [];
    this.book = undefined;
    this.bookReceived = undefined;
  }

  quote(id: number | null | undefined): Quote | undefined {
    void this.quotes;
    return id === null || id === undefined ? undefined : this.byId.get(id);
  }

  /** Depth of one security only: nobody looks at two. */
  showDepth(securityId: number | null): void {
    this.unsubscribeBook();
    this.book = undefined;
    this.bookReceived = undefined;
    if (securityId === null) return;
    this.unsubscribeBook = this.broker.listen(
      `book.${securityId}`,
      (_, body) => {
        this.bookReceived = body;
        this.scheduleDraw();
      },
      { lastValue: true },
    );
  }

  async subscribe(securityId: number, strategyName: string, subscribe: boolean): Promise<void> {
    const verb = subscribe ? 'subscribe' : 'unsubscribe';
    await this.rest.put(`/rest/subscription/marketdata/${verb}`, { body: { strategyName, securityId, subscribe } });
    const quote = this.byId.get(securityId);
    if (quote && subscribe) quote.subscribed = true;
  }

  private handle(securityId: number, body: string): void {
    this.ticksReceived++;
    if (this.byId.size > 0) this.applyTick(securityId, body);
    else if (this.early.length < EARLY_MAX) this.early.push([securityId, body]);
  }

  private applyTick(securityId: number, body: string): void {
    const quote = this.byId.get(securityId);
    if (!quote?.handle(body)) return;
    this.changed.push(quote);
    this.scheduleDraw();
  }

  private handleSubscription(message: SubscriptionMessage): void {
    const quote = this.byId.get(message.securityId);
    if (quote) quote.subscribed = message.subscribers > 0;
  }

  private draw(): void {
    let opened = false;
    if (this.changed.length > 0 && !this.hasPrices) afterPaint(() => (this.hasPrices = true));
    for (const quote of this.changed) opened = quote.show() || opened;
    this.changed.length = 0;
    if (this.bookReceived) this.book = parseJson(this.bookReceived) as Book;
    this.bookReceived = undefined;
    if (opened) this.saveTimer ??= setTimeout(() => this.saveOpenings(), SAVE_MS);
  }

  private saveOpenings(): void {
    this.saveTimer = undefined;
    const prices = Object.fromEntries(
      this.quotes.filter((quote) => quote.openingPrice !== undefined).map((quote) => [quote.id, quote.openingPrice]),
    );
    try {
      localStorage.setItem(OPENING_KEY, JSON.stringify({ day: today(), prices }));
    } catch {
      // Without room the change is measured from when the page was opened.
    }
  }
}

const today = (): string => new Date().toISOString().slice(0, 10);

function loadOpenings(): Record<number, Decimal> {
  try {
    const kept = JSON.parse(localStorage.getItem(OPENING_KEY) ?? '{}') as { day?: string; prices?: Record<number, Decimal> };
    return kept.day === today() ? (kept.prices ?? {}) : {};
  } catch {
    return {};
  }
}
