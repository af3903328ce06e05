// A resource without a topic: fetched at intervals while a panel shows it.

import type { Rest } from '../link/rest';

export class Poll<T> {
  value: T | null = $state.raw(null);
  error = $state('');

  constructor(
    private readonly rest: Rest,
    private readonly path: string | (() => string),
    private readonly everyMs: number,
  ) {}

  /** Starts polling. The returned function stops it, as `$effect` expects. */
  watch(): () => void {
    void this.refresh();
    const timer = setInterval(() => void this.refresh(), this.everyMs);
    return () => clearInterval(timer);
  }

  async refresh(): Promise<void> {
    try {
      const path = typeof this.path === 'string' ? this.path : this.path();
      this.value = await this.rest.get<T>(path);
      this.error = '';
    } catch (problem) {
      this.error = problem instanceof Error ? problem.message : String(problem);
    }
  }
}
