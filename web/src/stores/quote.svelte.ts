// Prices of one security. Ticks arrive more often than they are drawn, so a tick is kept as text
// and parsed when it is needed.

import { Candles } from '../model/candles';
import { type Decimal, decimal, units } from '../model/decimal';
import { parseJson } from '../model/json';
import { peekNumber, peekText } from '../model/peek';
import type { Security, Tick } from '../model/types';

/** Length of `2026-11-15T10:00:00`; bars need no smaller unit. */
const SECOND_LENGTH = 19;

/** The first price of the day that this browser received, and when. */
export interface Opening {
  price: Decimal;
  at: number;
}

export class Quote {
  /** Whether a strategy is subscribed, if known. */
  subscribed: boolean | undefined = $state();
  readonly candles = new Candles();

  /** Increases with each tick to show. */
  private version = $state(0);
  /** A tick passes through three states: received and not shown, shown and not parsed, parsed. */
  private received: string | undefined;
  private unread: string | undefined;
  private read: Tick | undefined;
  /** Sequence number of the newest message. */
  private seq = 0;

  constructor(
    readonly security: Security,
    /** The first price this browser saw today, to measure change by. */
    private opening: Opening | undefined,
  ) {}

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

  get firstSeen(): Opening | undefined {
    void this.version;
    return this.opening;
  }

  get change(): Decimal | undefined {
    const [last, opening] = [units(this.tick?.last), units(this.opening?.price)];
    return last === null || opening === null ? undefined : decimal(last - opening);
  }

  /** Change in percent of the first price seen. */
  get changePct(): number | undefined {
    const [last, opening] = [Number(this.tick?.last), Number(this.opening?.price)];
    return Number.isNaN(last) || !opening ? undefined : ((last - opening) / Math.abs(opening)) * 100;
  }

  /** Handles the body of a tick. Returns whether it is the first since the last drawing. */
  handle(body: string): boolean {
    const seq = peekNumber(body, '"seq":');
    // A conflated tick may arrive after a newer one.
    if (seq < this.seq) return false;
    this.seq = seq;
    this.candles.addPrice(priceOf(body), secondOf(body));
    const isFirst = this.received === undefined;
    this.received = body;
    return isFirst;
  }

  /** Shows the newest tick. Returns whether its price is the first of the day. */
  show(): boolean {
    this.unread = this.received ?? this.unread;
    this.received = undefined;
    this.version++;
    this.subscribed ??= true;
    if (this.opening !== undefined) return false;
    const price = this.tick?.last;
    if (price !== undefined) this.opening = { price, at: Date.now() };
    return price !== undefined;
  }

  /** Resets the sequence number for a new connection, whose numbers may start again. */
  reset(): void {
    this.seq = 0;
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
