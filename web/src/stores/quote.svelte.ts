// Prices of one security. Ticks arrive more often than they are drawn, so a tick is kept as text
// and parsed when it is needed.

import { type Bar, type BarLength, Candles } from '../model/candles';
import { type Decimal, decimal, units } from '../model/decimal';
import { parseJson } from '../model/json';
import { peekNumber, peekText } from '../model/peek';
import type { Security, Tick } from '../model/types';

/** Length of `2026-11-15T10:00:00`; bars need no smaller unit. */
const SECOND_LENGTH = 19;

/** The price that changes are relative to: the close of the trading day before, or the first of the day. */
export interface BasePrice {
  price: Decimal;
  isClose: boolean;
}

export class Quote {
  /** Whether a strategy is subscribed, if known. */
  subscribed: boolean | undefined = $state();
  readonly candles = new Candles();
  /** Increases with each history of bars. */
  historyVersion = $state(0);
  private base: BasePrice | undefined = $state.raw();
  /** Lengths of bars whose history was requested. */
  private readonly requested = new Set<BarLength>();

  /** Increases with each tick to show. */
  private version = $state(0);
  /** A tick passes through three states: received and not shown, shown and not parsed, parsed. */
  private received: string | undefined;
  private unread: string | undefined;
  private read: Tick | undefined;
  /** Sequence number of the newest message. */
  private seq = 0;
  /** Volume of the trading day in the newest message; NaN before the first. */
  private volume = NaN;

  constructor(readonly security: Security) {}

  get id(): number {
    return this.security.id;
  }

  get tick(): Tick | undefined {
    // Reading `version` makes the caller run again when there is another tick.
    void this.version;
    if (this.unread !== undefined) {
      this.read = parseJson(this.unread) as Tick;
      this.unread = undefined;
    }
    return this.read;
  }

  get basePrice(): BasePrice | undefined {
    return this.base;
  }

  /** Sets the prices of the service to measure change by. Unknown ones are absent. */
  setBase(previousClose: Decimal | undefined, open: Decimal | undefined): void {
    const price = previousClose ?? open;
    if (price !== undefined) this.base = { price, isClose: previousClose !== undefined };
  }

  get change(): Decimal | undefined {
    const [last, base] = [units(this.tick?.last), units(this.base?.price)];
    return last === null || base === null ? undefined : decimal(last - base);
  }

  /** Change in percent of the base price. */
  get changePct(): number | undefined {
    const [last, base] = [Number(this.tick?.last), Number(this.base?.price)];
    return Number.isNaN(last) || !base ? undefined : ((last - base) / Math.abs(base)) * 100;
  }

  /** Returns whether the history of a length was not requested on this connection, and notes it. */
  needsHistory(length: BarLength): boolean {
    if (this.requested.has(length)) return false;
    this.requested.add(length);
    return true;
  }

  /** Notes that the history of a length did not arrive. */
  forgetHistory(length: BarLength): void {
    this.requested.delete(length);
  }

  addHistory(length: BarLength, bars: readonly Bar[]): void {
    this.candles.addHistory(length, bars);
    this.historyVersion++;
  }

  /** Handles the body of a tick. Returns whether it is the first since the last drawing. */
  handle(body: string): boolean {
    const seq = peekNumber(body, '"seq":');
    // A conflated tick may arrive after a newer one.
    if (seq < this.seq) return false;
    this.seq = seq;
    this.candles.addPrice(priceOf(body), secondOf(body), this.tradedUntil(peekNumber(body, '"volume":')));
    const isFirst = this.received === undefined;
    this.received = body;
    return isFirst;
  }

  /**
   * Returns what was traded since the message before, because not every trade has a message of its
   * own. A volume that decreases is that of a new trading day.
   */
  private tradedUntil(volume: number): number {
    const before = this.volume;
    this.volume = volume;
    if (Number.isNaN(volume) || Number.isNaN(before)) return 0;
    return volume >= before ? volume - before : volume;
  }

  /** Shows the newest tick. */
  show(): void {
    this.unread = this.received ?? this.unread;
    this.received = undefined;
    this.version++;
    this.subscribed ??= true;
    // The service knew no price when it was asked, so this one is the first of the day.
    if (this.base === undefined) this.setBase(undefined, this.tick?.last);
  }

  /**
   * Prepares for a new connection: its sequence numbers may start again, and prices were missed
   * before it.
   */
  reset(): void {
    this.seq = 0;
    this.volume = NaN;
    this.requested.clear();
    this.historyVersion++;
  }
}

/** Returns the difference between ask and bid. */
export function spreadOf(tick: Tick | undefined): Decimal | undefined {
  const [bid, ask] = [units(tick?.bid), units(tick?.ask)];
  return bid === null || ask === null ? undefined : decimal(ask - bid);
}

/** Returns the last price, or the mid price if nothing was traded. */
function priceOf(body: string): number {
  const last = peekNumber(body, '"last":');
  return Number.isNaN(last) ? (peekNumber(body, '"bid":') + peekNumber(body, '"ask":')) / 2 : last;
}

let newestSecond = { text: '', at: NaN };

/**
 * Returns seconds since the epoch. Caches the newest, because most successive ticks are of the same
 * second.
 */
function secondOf(body: string): number {
  const text = peekText(body, '"dateTime":', SECOND_LENGTH);
  if (text !== newestSecond.text) newestSecond = { text, at: Date.parse(`${text}Z`) / 1000 };
  return newestSecond.at;
}
