// The portfolio, and its history since the page was opened.

import type { Rest } from '../link/rest';
import type { Portfolio } from '../model/types';

const POLL_MS = 1_000;
/** Points of two hours. */
const POINTS_MAX = 7_200;

/** A point of the charts, in the base currency. */
export interface Point {
  /** Seconds since the epoch. */
  at: number;
  pl: number;
  realized: number;
  net: number;
  gross: number;
}

export class PortfolioStore {
  now: Portfolio | null = $state.raw(null);
  points: Point[] = $state.raw([]);
  private strategy = '';

  constructor(
    private readonly rest: Rest,
    /** Gross exposure in the base currency. */
    private readonly gross: (strategy: string, base: string) => number,
  ) {}

  watch(): () => void {
    const timer = setInterval(() => void this.refresh(), POLL_MS);
    return () => clearInterval(timer);
  }

  /** Selects a strategy; empty: all strategies together. */
  choose(strategy: string): void {
    if (strategy === this.strategy) return;
    this.strategy = strategy;
    this.points = [];
    this.now = null;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    const { strategy } = this;
    const query = strategy === '' ? '' : `?strategy=${encodeURIComponent(strategy)}`;
    try {
      const portfolio = await this.rest.get<Portfolio>(`/rest/ext/portfolio${query}`);
      if (strategy !== this.strategy) return;
      this.now = portfolio;
      this.points = [...this.points.slice(1 - POINTS_MAX), this.point(portfolio)];
    } catch {
      // The header shows a lost connection; the chart has no point for this time.
    }
  }

  private point({ realizedPL, unrealizedPL, marketValue, baseCurrency }: Portfolio): Point {
    const realized = Number(realizedPL ?? 0);
    return {
      at: Date.now() / 1000,
      realized,
      pl: realized + Number(unrealizedPL ?? 0),
      net: Number(marketValue ?? 0),
      gross: this.gross(this.strategy, baseCurrency),
    };
  }
}
