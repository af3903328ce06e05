// Positions. A message is a full image; between messages, the page values positions at its newest
// prices.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sequence, Sync } from '../link/sync';
import { type Decimal, add, decimal, isZero, multiply, units } from '../model/decimal';
import { parseJson } from '../model/json';
import type { Position, PositionMessage, Security, Tick } from '../model/types';

export class PositionStore {
  rows: Position[] = $state.raw([]);
  isComplete = $state(false);

  private readonly byId = new Map<Position['id'], Position>();
  private readonly sequence = new Sequence();
  private readonly sync: Sync<PositionMessage>;

  constructor(
    private readonly rest: Rest,
    broker: Broker,
  ) {
    this.sync = new Sync({
      snapshot: async () => {
        const rows = await this.rest.get<Position[]>('/rest/position');
        return () => {
          this.byId.clear();
          for (const row of rows) this.byId.set(row.id, row);
        };
      },
      apply: (message) => this.apply(message),
      draw: () => {
        this.rows = [...this.byId.values()];
        this.isComplete = this.sync.isComplete;
      },
    });
    broker.listen('position.>', (_, body) => this.sync.handle(parseJson(body) as PositionMessage));
  }

  restart(): Promise<void> {
    this.sequence.reset();
    this.isComplete = false;
    return this.sync.restart();
  }

  of(strategyName: string, securityId: number | null): Position | undefined {
    return this.rows.find((row) => row.securityId === securityId && row.strategyName === strategyName);
  }

  async close(position: Position): Promise<void> {
    await this.rest.delete(`/rest/position/${position.id}`);
  }

  async reduce(position: Position, quantity: Decimal): Promise<void> {
    await this.rest.post(`/rest/position/reduce/${position.id}`, { body: { quantity } });
  }

  private apply(message: PositionMessage): void {
    if (!this.sequence.follows(message.id, message.seq)) {
      this.sequence.reset();
      this.isComplete = false;
      this.sync.gap();
      return;
    }
    const { seq: _seq, ts: _ts, type: _type, ...position } = message;
    this.byId.set(position.id, position);
  }
}

export interface Valuation {
  marketPrice?: Decimal;
  marketValue?: Decimal;
  unrealizedPL?: Decimal;
}

/**
 * Values a position at a tick like the service: long at the bid, short at the ask, at the last
 * price without a quote.
 */
export function valuationAt(position: Position, tick: Tick | undefined, security: Security | undefined): Valuation {
  const qty = units(position.quantity) ?? 0n;
  if (qty === 0n) return { marketValue: '0', unrealizedPL: '0' };
  const price = (qty > 0n ? tick?.bid : tick?.ask) ?? tick?.last;
  const [at, size, average] = [units(price), units(security?.contractSize), units(position.avgPrice)];
  if (at === null || size === null) return position;
  const worth = multiply(multiply(at, qty), size);
  const cost = average === null ? null : multiply(multiply(average, qty), size);
  return {
    marketPrice: price,
    marketValue: decimal(worth),
    unrealizedPL: cost === null ? undefined : decimal(worth - cost),
  };
}

/** Sums of positions in one currency. */
export interface Total {
  currency: string;
  count: number;
  value: Decimal;
  unrealized: Decimal;
  realized: Decimal;
}

/** Returns the sums of positions by currency, the base currency first. */
export function totalsOf(rows: readonly Position[], valuation: (row: Position) => Valuation, base?: string): Total[] {
  const byCurrency = new Map<string, Total>();
  for (const row of rows) {
    const currency = row.currency ?? '';
    const sum = byCurrency.get(currency) ?? { currency, count: 0, value: '0', unrealized: '0', realized: '0' };
    const { marketValue, unrealizedPL } = valuation(row);
    byCurrency.set(currency, {
      currency,
      count: sum.count + 1,
      value: add(sum.value, marketValue),
      unrealized: add(sum.unrealized, unrealizedPL),
      realized: add(sum.realized, row.realizedPL),
    });
  }
  const rank = ({ currency }: Total): string => (currency === base ? '' : currency);
  return [...byCurrency.values()].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

export const isFlat = (position: Position): boolean => isZero(position.quantity);
