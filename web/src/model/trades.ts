// Time and sales: trades found in ticks. A tick tells the last price and what was traded since the
// tick before, so trades between two ticks are one trade here.

import { type Decimal, decimal, units } from './decimal';
import { nanoseconds } from './time';
import type { HistoryTick, Instant, Side, Tick } from './types';

/** Trades kept of the selected security: some screens. */
export const TRADES_MAX = 500;

export interface Trade {
  /** Increases with each trade. */
  key: number;
  at: Instant;
  price: Decimal;
  size: Decimal;
  /** The side that took the liquidity; absent if it cannot be told. */
  direction?: Side;
}

/** Quote and trade before a trade. */
interface Before {
  bid?: Decimal;
  ask?: Decimal;
  price?: Decimal;
  direction?: Side;
}

/**
 * Returns the side that traded against the book, by the rule of Lee and Ready: at the ask or above
 * it is a purchase, at the bid or below a sale. Between them a higher price than before is a
 * purchase, a lower one a sale, and the same price has the direction of the trade before.
 */
export function directionOf(price: Decimal, { bid, ask, price: last, direction }: Before): Side | undefined {
  const [at, low, high, before] = [units(price), units(bid), units(ask), units(last)];
  if (at === null) return undefined;
  if (high !== null && at >= high) return 'BUY';
  if (low !== null && at <= low) return 'SELL';
  if (before === null) return undefined;
  return at > before ? 'BUY' : at < before ? 'SELL' : direction;
}

/** The trades of one security, from its history and its live ticks. */
export class TradeList {
  /** Oldest first. */
  private trades: Trade[] = [];
  private before: Before = {};
  /** Volume of the trading day in the newest live tick; null before the first. */
  private volume: bigint | null = null;
  private nextKey = 1;

  /** Returns the trades, newest first. */
  get newestFirst(): Trade[] {
    return [...this.trades].reverse();
  }

  /** Replaces the trades by those of the history, then adds the live ones that are newer. */
  addHistory(ticks: readonly HistoryTick[]): void {
    const live = this.trades;
    this.trades = [];
    const now = this.before;
    this.before = {};
    for (const tick of ticks) {
      this.put(tick, tick.last === undefined ? null : units(tick.lastSize));
    }
    const end = nanoseconds(ticks.at(-1)?.dateTime ?? '') ?? 0n;
    for (const trade of live) if ((nanoseconds(trade.at) ?? 0n) > end) this.keep({ ...trade, key: this.nextKey++ });
    // Live ticks arrived after those of the history.
    if (now.price !== undefined || now.bid !== undefined || now.ask !== undefined) this.before = now;
  }

  /** Adds a live tick. Returns whether it has a trade. */
  addTick(tick: Tick): boolean {
    const volume = units(tick.volume);
    const before = this.volume;
    this.volume = volume;
    // A volume that decreases is that of a new trading day.
    const isKnown = volume !== null && before !== null;
    return this.put(tick, isKnown ? (volume >= before ? volume - before : volume) : null);
  }

  private put({ bid, ask, last, dateTime }: HistoryTick, size: bigint | null): boolean {
    const isTrade = last !== undefined && size !== null && size > 0n;
    let { direction } = this.before;
    if (isTrade) {
      direction = directionOf(last, this.before);
      this.keep({ key: this.nextKey++, at: dateTime, price: last, size: decimal(size), direction });
    }
    this.before = { bid, ask, price: last ?? this.before.price, direction };
    return isTrade;
  }

  private keep(trade: Trade): void {
    this.trades.push(trade);
    if (this.trades.length > TRADES_MAX) this.trades.shift();
  }
}
