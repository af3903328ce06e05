// Strategies, their lifecycle phases and, while a panel shows them, their portfolios.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sync } from '../link/sync';
import { parseJson } from '../model/json';
import type { LifecycleMessage, Phase, Portfolio, Strategy } from '../model/types';

const PORTFOLIOS_MS = 2_000;

export class StrategyStore {
  rows: Strategy[] = $state.raw([]);
  /** By the name of the strategy; only of those that are followed. */
  portfolios: Readonly<Record<string, Portfolio>> = $state.raw({});

  private byName = new Map<string, Strategy>();
  private readonly sync: Sync<LifecycleMessage>;

  constructor(
    private readonly rest: Rest,
    broker: Broker,
  ) {
    this.sync = new Sync({
      snapshot: async () => {
        const rows = await rest.get<Strategy[]>('/rest/strategy');
        return () => {
          this.byName = new Map(rows.map((row) => [row.name, row]));
        };
      },
      apply: ({ strategyName, phase, reason }) => {
        const row = this.byName.get(strategyName);
        if (row) this.byName.set(strategyName, { ...row, phase, reason });
      },
      draw: () => {
        this.rows = [...this.byName.values()];
      },
    });
    broker.listen('lifecycle.*', (_, body) => this.sync.handle(parseJson(body) as LifecycleMessage));
  }

  restart(): Promise<void> {
    return this.sync.restart();
  }

  named(name: string): Strategy | undefined {
    return this.rows.find((row) => row.name === name);
  }

  /** Reads the portfolios of these strategies now and at intervals. The returned function ends it. */
  followPortfolios(names: readonly string[]): () => void {
    let isEnded = false;
    const read = async (): Promise<void> => {
      const get = (name: string): Promise<Portfolio> =>
        this.rest.get<Portfolio>(`/rest/ext/portfolio?strategy=${encodeURIComponent(name)}`);
      const found = await Promise.allSettled(names.map(get));
      if (isEnded) return;
      const entries = names.flatMap((name, at) => {
        const one = found[at];
        return one?.status === 'fulfilled' ? [[name, one.value] as const] : [];
      });
      // One that did not arrive keeps its last values; the header shows a lost connection.
      this.portfolios = { ...this.portfolios, ...Object.fromEntries(entries) };
    };
    void read();
    const timer = setInterval(() => void read(), PORTFOLIOS_MS);
    return () => {
      isEnded = true;
      clearInterval(timer);
    };
  }

  /**
   * Moves a strategy to a phase, through the phases between. A stopped strategy may start again.
   */
  async setPhase(name: string, phase: Phase): Promise<void> {
    await this.rest.put(`/rest/ext/strategy/${encodeURIComponent(name)}/phase`, { body: { phase } });
  }
}
