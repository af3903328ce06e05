// Prices. A tick is a full image, so only the newest of each security counts, and rows are drawn once per frame.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
import type { Rest } from '../link/rest';
import { Candles } from '../model/candles';
import { type Decimal, compare, decimal, units } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Book, Security, SubscriptionMessage, Tick } from '../model/types';
import type { Reference } from './reference.svelte';

/** Rates are counted over so long. */
const RATE_MS = 1_000;
const OPENING_KEY = 'pitlane.opening';

/** A move of a price: up 1, down -1. `turn` alternates, so that an animation starts anew. */
export interface Move {
  to: 1 | -1 | 0;
  turn: 0 | 1;
}

const STILL: Move = { to: 0, turn: 0 };

/** One security's prices. */
export class Quote {
  tick: Tick | undefined = $state.raw();
  bidMove: Move = $state.raw(STILL);
  askMove: Move = $state.raw(STILL);
  lastMove: Move = $state.raw(STILL);
  /** Whether somebody is subscribed, as far as we have been told. */
  subscribed: boolean | undefined = $state();
  readonly candles = new Candles();

  constructor(
    readonly security: Security,
    /** The first price this browser saw today, to measure change by. */
    private opening: Decimal | undefined,
  ) {}

  get id(): number {
    return this.security.id;
  }

  /** Between bid and ask. */
  get spread(): Decimal | undefined {
    const [bid, ask] = [units(this.tick?.bid), units(this.tick?.ask)];
    return bid === null || ask === null ? undefined : decimal(ask - bid);
  }

  get change(): Decimal | undefined {
    const [last, opening] = [units(this.tick?.last), units(this.opening)];
    return last === null || opening === null ? undefined : decimal(last - opening);
  }

  /** Of the opening price, in percent. */
  get changePct(): number | undefined {
    const change = this.change;
    const opening = Number(this.opening);
    return change === undefined || !opening ? undefined : (Number(change) / Math.abs(opening)) * 100;
  }

  /** Answers whether this price opens the day here. */
  show(tick: Tick): boolean {
    const old = this.tick;
    this.bidMove = moved(this.bidMove, old?.bid, tick.bid);
    this.askMove = moved(this.askMove, old?.ask, tick.ask);
    this.lastMove = moved(this.lastMove, old?.last, tick.last);
    this.tick = tick;
    this.subscribed ??= true;
    if (this.opening !== undefined || tick.last === undefined) return false;
    this.opening = tick.last;
    return true;
  }

  get openingPrice(): Decimal | undefined {
    return this.opening;
  }
}

export class Market {
  quotes: Quote[] = $state.raw([]);
  /** Of the chosen security, where its venue gives depth. */
  book: Book | undefined = $state.raw();
  /** Ticks heard in the last second. */
  rate = $state(0);
  /** Rises with each drawn frame that had new prices; charts look at it. */
  drawn = $state(0);
  ticksHeard = 0;

  private byId = new Map<number, Quote>();
  private readonly pending = new Map<number, Tick>();
  private readonly newest = new Map<number, number>();
  private bookPending: Book | undefined;
  private leaveBook: () => void = () => {};

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
    private readonly reference: Reference,
  ) {
    broker.listen('tick.*', (_, body) => this.hear(parseJson(body) as Tick), { lastValue: true });
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
    this.quotes = quotes;
    atNextFrame(this.draw);
  }

  /** A connection begins: numbers may begin anew with it. */
  begin(): void {
    this.newest.clear();
    this.book = undefined;
    this.bookPending = undefined;
  }

  quote(id: number | null | undefined): Quote | undefined {
    void this.quotes;
    return id === null || id === undefined ? undefined : this.byId.get(id);
  }

  hear(tick: Tick): void {
    this.ticksHeard++;
    // What waited in a slot may come after a newer one that did not have to wait.
    if (tick.seq < (this.newest.get(tick.securityId) ?? 0)) return;
    this.newest.set(tick.securityId, tick.seq);
    this.pending.set(tick.securityId, tick);
    this.byId.get(tick.securityId)?.candles.take(tick);
    atNextFrame(this.draw);
  }

  /** Depth of one security only: nobody looks at two. */
  look(securityId: number | null): void {
    this.leaveBook();
    this.book = undefined;
    this.bookPending = undefined;
    if (securityId === null) return;
    this.leaveBook = this.broker.listen(
      `book.${securityId}`,
      (_, body) => {
        this.bookPending = parseJson(body) as Book;
        atNextFrame(this.draw);
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

  private hearSubscription(message: SubscriptionMessage): void {
    const quote = this.byId.get(message.securityId);
    if (quote) quote.subscribed = message.subscribers > 0;
  }

  private readonly draw = (): void => {
    let opened = false;
    for (const [id, tick] of this.pending) opened = this.byId.get(id)?.show(tick) || opened;
    // Prices that came before the securities wait for them.
    if (this.byId.size > 0) this.pending.clear();
    if (this.bookPending) this.book = this.bookPending;
    this.bookPending = undefined;
    this.drawn++;
    if (opened) keepOpenings(this.quotes);
  };
}

function moved(before: Move, old: Decimal | undefined, now: Decimal | undefined): Move {
  if (old === undefined || now === undefined || old === now) return before;
  const to = compare(now, old);
  return to === 0 ? before : { to: to > 0 ? 1 : -1, turn: before.turn === 0 ? 1 : 0 };
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

function keepOpenings(quotes: Quote[]): void {
  const prices = Object.fromEntries(
    quotes.filter((quote) => quote.openingPrice !== undefined).map((quote) => [quote.id, quote.openingPrice]),
  );
  try {
    localStorage.setItem(OPENING_KEY, JSON.stringify({ day: today(), prices }));
  } catch {
    // Without room the change is measured from when the page was opened.
  }
}
