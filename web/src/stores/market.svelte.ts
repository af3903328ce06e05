// Prices. A tick is a full image, so only the newest of each security matters, and all are drawn
// together.

import type { Broker } from '../link/broker';
import { afterPaint, atNextFrame, throttled } from '../link/frame';
import type { Rest } from '../link/rest';
import type { Decimal } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Book, SubscriptionMessage } from '../model/types';
import { Quote } from './quote.svelte';
import type { ReferenceStore } from './reference.svelte';

/**
 * Interval between two drawings: people cannot read numbers that change more than twenty times a
 * second.
 */
export const DRAW_MS = 50;
/** Interval over which the rate is counted. */
const RATE_MS = 1_000;
/**
 * Ticks kept until the securities arrive: a second or two of a busy market. Later ticks replace
 * lost ones.
 */
const EARLY_MAX = 10_000;
const OPENING_KEY = 'pitlane.opening';
/** Delay before the first prices of a day are saved, because they arrive one after the other. */
const SAVE_MS = 1_000;

export class MarketStore {
  quotes: Quote[] = $state.raw([]);
  /** Depth of the selected security, if its venue provides it. */
  book: Book | undefined = $state.raw();
  /** Ticks received in the last second. */
  rate = $state(0);
  /** Whether a price has been painted. */
  hasPrices = $state(false);
  ticksReceived = 0;

  private byId = new Map<number, Quote>();
  /** Ticks that arrived before the securities. */
  private early: [number, string][] = [];
  /** Quotes with a tick that is not drawn yet. */
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
    broker.listen('tick.*', (topic, body) => this.handle(Number(topic.slice('tick.'.length)), body), {
      lastValue: true,
    });
    broker.listen('subscription.>', (_, body) => this.handleSubscription(parseJson(body) as SubscriptionMessage));
  }

  /** Starts counting the rate. The page calls it once. */
  watch(): () => void {
    let before = 0;
    const timer = setInterval(() => {
      this.rate = this.ticksReceived - before;
      before = this.ticksReceived;
    }, RATE_MS);
    return () => clearInterval(timer);
  }

  /**
   * Creates a quote for each security after reference data has arrived. Existing quotes keep their
   * prices.
   */
  createQuotes(): void {
    const openings = loadOpenings();
    const quotes = this.reference.securities.map(
      (security) => this.byId.get(security.id) ?? new Quote(security, openings[security.id]),
    );
    this.byId = new Map(quotes.map((quote) => [quote.id, quote]));
    for (const [id, body] of this.early) this.applyTick(id, body);
    this.early = [];
    // Draws rows and their prices in the same frame.
    atNextFrame(() => this.draw());
    this.quotes = quotes;
  }

  /** Discards the state of the previous connection. */
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

  /** Subscribes to the depth of the selected security only. */
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
      // Without storage, the change is relative to the price when the page was opened.
    }
  }
}

const today = (): string => new Date().toISOString().slice(0, 10);

function loadOpenings(): Record<number, Decimal> {
  try {
    const kept = JSON.parse(localStorage.getItem(OPENING_KEY) ?? '{}') as {
      day?: string;
      prices?: Record<number, Decimal>;
    };
    return kept.day === today() ? (kept.prices ?? {}) : {};
  } catch {
    return {};
  }
}
