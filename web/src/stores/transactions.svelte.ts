// Transactions of the day.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sync } from '../link/sync';
import { parseJson } from '../model/json';
import type { Transaction, TransactionMessage } from '../model/types';

/** Transactions shown, at most; the CSV contains the shown ones. */
const ROWS_MAX = 5_000;

export class TransactionStore {
  /** Newest first. */
  rows: Transaction[] = $state.raw([]);
  isComplete = $state(false);
  /** Called with each transaction that was booked while the page was open. */
  onNew: (row: Transaction) => void = () => {};

  private readonly byId = new Map<Transaction['id'], Transaction>();
  private readonly sync: Sync<TransactionMessage>;

  constructor(
    private readonly rest: Rest,
    broker: Broker,
  ) {
    this.sync = new Sync({
      snapshot: async () => {
        const rows = await this.rest.get<Transaction[]>(`/rest/transaction/daily?limit=${ROWS_MAX}`);
        return () => {
          this.byId.clear();
          for (const row of rows) this.byId.set(row.id, row);
        };
      },
      // A transaction never changes, so a repeated message has no effect.
      apply: ({ transactionType, seq: _seq, ts: _ts, ...rest }) => {
        const row = { ...rest, type: transactionType };
        if (!this.byId.has(row.id)) this.onNew(row);
        this.byId.set(row.id, row);
      },
      draw: () => this.draw(),
    });
    broker.listen('transaction.*', (_, body) => this.sync.handle(parseJson(body) as TransactionMessage));
  }

  restart(): Promise<void> {
    this.isComplete = false;
    return this.sync.restart();
  }

  async record(body: Record<string, unknown>): Promise<void> {
    await this.rest.post('/rest/transaction', { body });
  }

  private draw(): void {
    const rows = [...this.byId.values()].sort((a, b) =>
      a.dateTime < b.dateTime ? 1 : a.dateTime > b.dateTime ? -1 : 0,
    );
    for (const row of rows.splice(ROWS_MAX)) this.byId.delete(row.id);
    this.rows = rows;
    this.isComplete = this.sync.isComplete;
  }
}
