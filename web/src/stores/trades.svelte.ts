// Time and sales of one security, while a panel shows them.

import type { Broker } from '../link/broker';
import { throttled } from '../link/frame';
import type { Rest } from '../link/rest';
import { parseJson } from '../model/json';
import { type Trade, TradeList } from '../model/trades';
import type { HistoryTick, Tick } from '../model/types';

/** Ticks of the history to read; many of them have no trade. */
const TICKS = 1_000;
const DRAW_MS = 100;

export class TradeStore {
  /** Newest first. */
  rows: Trade[] = $state.raw([]);
  private list = new TradeList();
  private readonly scheduleDraw = throttled(() => (this.rows = this.list.newestFirst), DRAW_MS);

  constructor(
    private readonly rest: Rest,
    private readonly broker: Broker,
  ) {}

  /** Follows the trades of a security. The returned function ends it. */
  follow(securityId: number): () => void {
    const list = (this.list = new TradeList());
    const end = this.broker.listen(`tick.${securityId}`, (_, body) => this.handle(body), {
      lastValue: true,
      // After a lost connection too: the history has the trades that were missed.
      onSubscribed: () => void this.load(securityId, list),
    });
    return () => {
      end();
      this.list = new TradeList();
      this.rows = [];
    };
  }

  private handle(body: string): void {
    if (this.list.addTick(parseJson(body) as Tick)) this.scheduleDraw();
  }

  private async load(securityId: number, list: TradeList): Promise<void> {
    try {
      const ticks = await this.rest.get<HistoryTick[]>(`/rest/ext/ticks?securityId=${securityId}&limit=${TICKS}`);
      list.addHistory(ticks);
    } catch {
      // The list then begins with the first trade that the page receives.
    }
    if (list === this.list) this.scheduleDraw();
  }
}
