// Reference data: securities, exchanges, accounts. Strategies have a lifecycle and their own store.

import type { Rest } from '../link/rest';
import { places } from '../model/decimal';
import { widestBold } from '../model/measure';
import type { Account, Exchange, Security } from '../model/types';

/** Least width of a column of symbols, and the padding of its cells, in pixels. */
const SYMBOL_PX_MIN = 76;
const PADDING_PX = 18;

export class ReferenceStore {
  securities: Security[] = $state.raw([]);
  exchanges: Exchange[] = $state.raw([]);
  accounts: Account[] = $state.raw([]);
  /** Width of a table column that shows each symbol completely, in pixels. */
  symbolWidth = $state(SYMBOL_PX_MIN);
  private byId = new Map<number, Security>();
  private placesById = new Map<number, number>();

  constructor(private readonly rest: Rest) {}

  async load(): Promise<void> {
    const [securities, exchanges, accounts] = await Promise.all([
      this.rest.get<Security[]>('/rest/security'),
      this.rest.get<Exchange[]>('/rest/exchange'),
      this.rest.get<Account[]>('/rest/account'),
    ]);
    this.byId = new Map(securities.map((security) => [security.id, security]));
    this.placesById = new Map(securities.map((security) => [security.id, places(security.tickSize)]));
    const widest = widestBold(securities.map((security) => security.symbol));
    this.symbolWidth = Math.max(SYMBOL_PX_MIN, Math.ceil(widest) + PADDING_PX);
    this.securities = securities;
    this.exchanges = exchanges;
    this.accounts = accounts;
  }

  security(id: number | null | undefined): Security | undefined {
    // Reading `securities` makes the caller run again when the data has arrived.
    void this.securities;
    return id === null || id === undefined ? undefined : this.byId.get(id);
  }

  symbol(id: number | undefined): string {
    return this.security(id)?.symbol ?? (id === undefined ? '' : `#${id}`);
  }

  exchange(id: number | undefined): Exchange | undefined {
    return this.exchanges.find((exchange) => exchange.id === id);
  }

  account(id: number | null | undefined): Account | undefined {
    return this.accounts.find((account) => account.id === id);
  }

  /** Returns the decimal places of a security's prices. */
  places(id: number | undefined): number {
    void this.securities;
    return id === undefined ? 0 : (this.placesById.get(id) ?? 0);
  }
}
