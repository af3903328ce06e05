// Prices. A tick is a full image, so only the newest of each security counts, and all of them are drawn in one go.

import type { Broker } from '../link/broker';
import { afterPaint, atNextFrame, paced } from '../link/frame';
import type { Rest } from '../link/rest';
import type { Decimal } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Book, SubscriptionMessage } from '../model/types';
import { Quote } from './quote.svelte';
import type { Reference } from './reference.svelte';

/** Between two drawings of prices: nobody reads numbers that change more often than twenty times a second. */
export const DRAW_MS = 50;
/** Rates are counted over so long. */
const RATE_MS = 1_000;
/** Ticks kept while the securities are on their way: a second or two of a busy market. What is lost comes again. */
const EARLY_MAX = 10_000;
const OPENING_KEY = 'pitlane.opening';
/** Between the first prices of a day and keeping them: they come one after the other. */
const KEEP_MS = 1_000;

export class Market {
  quotes: Quote[] = $state.raw([]);
  /** Of the chosen security, where its venue gives depth. */
  book: Book | undefined = $state.raw();
  /** Ticks heard in the last second. */
  rate = $state(0);
  /** Whether any has been painted yet. */
  hasPrices = $state(false);
  ticksHeard = 0;

  private byId = new Map<number, Quote>();
  /** Ticks that came before the securities. */
  private early: [number, string][] = [];
  /** Quotes that have something to show. */
  private readonly moved: Quote[] = [];
  private bookHeard: string | undefined;
  private leaveBook: () => void = () => {};
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private readonly askToDraw = paced(() => this.draw(), DRAW_MS);

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
    private readonly reference: Reference,
  ) {
    broker.listen('tick.*', (topic, body) => this.hear(Number(topic.slice('tick.'.length)), body), { lastValue: true });
    broker.listen('subscription.>', (_, body) => this.hearSubscription(parseJson(body) as SubscriptionMessage));
  }

  /** Counts the rate; the page calls it once, tests need not. */
  watch(): () => void {
    let before = 0;
    const timer = setInterval(() => {
      this.rate = this.ticksHeard - before;
      before = this.ticksHeard;
    }, RATE_MS);
    return () => clearInterval(timer);
  }

  /** After reference data have come: a row for each security; prices already here stay. */
  arrange(): void {
    const openings = loadOpenings();
    const quotes = this.reference.securities.map(
      (security) => this.byId.get(security.id) ?? new Quote(security, openings[security.id]),
    );
    this.byId = new Map(quotes.map((quote) => [quote.id, quote]));
    for (const [id, body] of this.early) this.take(id, body);
    this.early = [];
    // Rows and their prices appear together.
    atNextFrame(() => this.draw());
    this.quotes = quotes;
  }

  /** A connection begins. */
  begin(): void {
    for (const quote of this.byId.values()) quote.begin();
    this.early = [];
    this.book = undefined;
    this.bookHeard = undefined;
  }

  quote(id: number | null | undefined): Quote | undefined {
    void this.quotes;
    return id === null || id === undefined ? undefined : this.byId.get(id);
  }

  /** Depth of one security only: nobody looks at two. */
  look(securityId: number | null): void {
    this.leaveBook();
    this.book = undefined;
    this.bookHeard = undefined;
    if (securityId === null) return;
    this.leaveBook = this.broker.listen(
      `book.${securityId}`,
      (_, body) => {
        this.bookHeard = body;
        this.askToDraw();
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

  private hear(securityId: number, body: string): void {
    this.ticksHeard++;
    if (this.byId.size > 0) this.take(securityId, body);
    else if (this.early.length < EARLY_MAX) this.early.push([securityId, body]);
  }

  private take(securityId: number, body: string): void {
    const quote = this.byId.get(securityId);
    if (!quote?.hear(body)) return;
    this.moved.push(quote);
    this.askToDraw();
  }

  private hearSubscription(message: SubscriptionMessage): void {
    const quote = this.byId.get(message.securityId);
    if (quote) quote.subscribed = message.subscribers > 0;
  }

  private draw(): void {
    let opened = false;
    if (this.moved.length > 0 && !this.hasPrices) afterPaint(() => (this.hasPrices = true));
    for (const quote of this.moved) opened = quote.show() || opened;
    this.moved.length = 0;
    if (this.bookHeard) this.book = parseJson(this.bookHeard) as Book;
    this.bookHeard = undefined;
    if (opened) this.keeping ??= setTimeout(() => this.keepOpenings(), KEEP_MS);
  }

  private keepOpenings(): void {
    this.keeping = undefined;
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
