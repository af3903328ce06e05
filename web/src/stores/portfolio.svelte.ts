// The portfolio and the profit of the day, which are fetched together and are one point of the
// charts, because a reader compares them; and the history: from the service for the time before the
// page was opened.

import type { Rest } from '../link/rest';
import type { Portfolio, PortfolioSample, Profit } from '../model/types';

/** The profit has a row for each security, so it is not fetched more often. */
const POLL_MS = 2_000;
/** Points of two hours, and those of the service. */
const POINTS_MAX = 6_480;

/** A point of the charts, in the base currency; a value that was unknown is null. */
export interface Point {
  /** Seconds since the epoch. */
  at: number;
  /** Realised and unrealised, without fees. */
  pl: number | null;
  realized: number | null;
  net: number | null;
  gross: number | null;
  /** Net liquidation value, which fees have reduced. */
  worth: number | null;
}

export class PortfolioStore {
  /** The portfolio at the time of `profit`. */
  now: Portfolio | null = $state.raw(null);
  profit: Profit | null = $state.raw(null);
  profitError = $state('');
  points: Point[] = $state.raw([]);
  private strategy = '';
  private hasPast = false;

  constructor(
    private readonly rest: Rest,
    /** Gross exposure in the base currency; null if not all positions have arrived. */
    private readonly gross: (strategy: string, base: string) => number | null,
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
    this.hasPast = false;
    this.now = null;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    const { strategy } = this;
    const query = strategy === '' ? '' : `?strategy=${encodeURIComponent(strategy)}`;
    if (!this.hasPast) void this.loadPast(query);
    // A service that cannot give the profit still gives the portfolio.
    const fetched = this.rest.get<Profit>('/rest/ext/profit').catch((problem: Error) => problem);
    try {
      const portfolio = await this.rest.get<Portfolio>(`/rest/ext/portfolio${query}`);
      const profit = await fetched;
      if (strategy !== this.strategy) return;
      this.now = portfolio;
      this.profitError = profit instanceof Error ? profit.message : '';
      if (!(profit instanceof Error)) this.profit = profit;
      const gross = this.gross(strategy, portfolio.baseCurrency);
      const point = { ...pointAt(Date.now(), portfolio), gross };
      this.points = [...this.points.slice(1 - POINTS_MAX), point];
    } catch {
      // The header shows a lost connection; the chart has no point for this time.
    }
  }

  /** Fetches the values from before the first point, once for each choice of a strategy. */
  private async loadPast(query: string): Promise<void> {
    this.hasPast = true;
    const { strategy } = this;
    try {
      const samples = await this.rest.get<PortfolioSample[]>(`/rest/ext/portfolio/history${query}`);
      if (strategy !== this.strategy) return;
      const first = this.points[0]?.at ?? Infinity;
      const past = samples.map((sample) => pointAt(Date.parse(sample.dateTime), sample));
      this.points = [...past.filter(({ at }) => at < first), ...this.points].slice(-POINTS_MAX);
    } catch {
      // The chart begins now: the service is down, or an earlier version that keeps no values.
    }
  }
}

/** Returns a point for the charts, where numbers need not be exact. */
function pointAt(ms: number, values: Omit<PortfolioSample, 'dateTime'>): Point {
  const number = (text: string | undefined): number | null => (text === undefined ? null : Number(text));
  const [realized, unrealized] = [number(values.realizedPL), number(values.unrealizedPL)];
  return {
    at: ms / 1000,
    realized,
    pl: realized === null || unrealized === null ? null : realized + unrealized,
    net: number(values.marketValue),
    gross: number(values.grossExposure),
    worth: number(values.netLiquidationValue),
  };
}
