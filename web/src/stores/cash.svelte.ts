// Cash by strategy and currency.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sync } from '../link/sync';
import { parseJson } from '../model/json';
import type { CashBalance, CashMessage } from '../model/types';

export class CashStore {
  rows: CashBalance[] = $state.raw([]);

  private readonly byKey = new Map<string, CashBalance>();
  private readonly sync: Sync<CashMessage>;

  constructor(rest: Rest, broker: Broker) {
    this.sync = new Sync({
      snapshot: async () => {
        const rows = await rest.get<CashBalance[]>('/rest/ext/cash-balance');
        return () => {
          this.byKey.clear();
          for (const row of rows) this.put(row);
        };
      },
      apply: ({ type: _type, seq: _seq, ts: _ts, ...row }) => this.put(row),
      draw: () => {
        this.rows = [...this.byKey.values()];
      },
    });
    broker.listen('cash-balance.>', (_, body) => this.sync.handle(parseJson(body) as CashMessage));
  }

  restart(): Promise<void> {
    return this.sync.restart();
  }

  private put(row: CashBalance): void {
    this.byKey.set(`${row.strategyId} ${row.currency}`, row);
  }
}
