// Strategies and their lifecycle phases.

import type { Broker } from '../link/broker';
import type { Rest } from '../link/rest';
import { Sync } from '../link/sync';
import { parseJson } from '../model/json';
import type { LifecycleMessage, Phase, Strategy } from '../model/types';

export class StrategyStore {
  rows: Strategy[] = $state.raw([]);

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

  /**
   * Moves a strategy to a phase, through the phases between. A stopped strategy may start again.
   */
  async setPhase(name: string, phase: Phase): Promise<void> {
    await this.rest.put(`/rest/ext/strategy/${encodeURIComponent(name)}/phase`, { body: { phase } });
  }
}
