// One security's prices. Ticks come far more often than anybody looks, so a tick is kept as it came and read when it is asked for.

import { Candles } from '../model/candles';
import { type Decimal, decimal, units } from '../model/decimal';
import { parseJson } from '../model/json';
import { peekNumber, peekText } from '../model/peek';
import type { Security, Tick } from '../model/types';

/** `2026-11-15T10:00:00`: bars are not made of less. */
const SECOND_LENGTH = 19;

export class Quote {
  /** Whether somebody is subscribed, as far as we have been told. */
  subscribed: boolean | undefined = $state();
  readonly candles = new Candles();

  /** Rises with each tick that is to be shown. */
  private version = $state(0);
  /** TopicMessage and not shown, shown and not read, read: a tick is one of them after the other. */
  private received: string | undefined;
  private unread: string | undefined;
  private read: Tick | undefined;
  /** Number of the newest message. */
  private seq = 0;

  constructor(
    readonly security: Security,
    /** The first price this browser saw today, to measure change by. */
    private opening: Decimal | undefined,
  ) {}

  get id(): number {
    return this.security.id;
  }

  get tick(): Tick | undefined {
    // Read, so that whoever asks is asked again when there is another.
    void this.version;
    if (this.unread !== undefined) {
      this.read = parseJson(this.unread) as Tick;
      this.unread = undefined;
    }
    return this.read;
  }

  get openingPrice(): Decimal | undefined {
    return this.opening;
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
    const [last, opening] = [Number(this.tick?.last), Number(this.opening)];
    return Number.isNaN(last) || !opening ? undefined : ((last - opening) / Math.abs(opening)) * 100;
  }

  /** Takes the body of a tick. Answers whether it is the first since something was shown. */
  handle(body: string): boolean {
    const seq = peekNumber(body, '"seq":');
    // What waited in a slot may come after a newer one that did not have to wait.
    if (seq < this.seq) return false;
    this.seq = seq;
    this.candles.addPrice(priceOf(body), secondOf(body));
    const isFirst = this.received === undefined;
    this.received = body;
    return isFirst;
  }

  /** Shows what was heard last. Answers whether its price opens the day here. */
  show(): boolean {
    this.unread = this.received ?? this.unread;
    this.received = undefined;
    this.version++;
    this.subscribed ??= true;
    if (this.opening !== undefined) return false;
    this.opening = this.tick?.last;
    return this.opening !== undefined;
  }

  /** A connection begins: numbers may begin anew with it. */
  reset(): void {
    this.seq = 0;
  }
}

/** The last price, or between bid and ask where nothing was traded. */
function priceOf(body: string): number {
  const last = peekNumber(body, '"last":');
  return Number.isNaN(last) ? (peekNumber(body, '"bid":') + peekNumber(body, '"ask":')) / 2 : last;
}

let newestSecond = { text: '', at: NaN };

/** Since the epoch. Of a thousand ticks in a row most are of the same second. */
function secondOf(body: string): number {
  const text = peekText(body, '"dateTime":', SECOND_LENGTH);
  if (text !== newestSecond.text) newestSecond = { text, at: Date.parse(`${text}Z`) / 1000 };
  return newestSecond.at;
}
