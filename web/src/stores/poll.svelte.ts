// What the service only tells when asked: fetched at intervals while somebody looks.

import type { Rest } from '../link/rest';

export class Poll<T> {
  value: T | null = $state.raw(null);
  fault = $state('');

  constructor(
    private readonly rest: Rest,
    private readonly path: string,
    private readonly everyMs: number,
  ) {}

  /** Until the answer is called; made for `$effect`. */
  watch(): () => void {
    void this.look();
    const timer = setInterval(() => void this.look(), this.everyMs);
    return () => clearInterval(timer);
  }

  async look(): Promise<void> {
    try {
      this.value = await this.rest.get<T>(this.path);
      this.fault = '';
    } catch (problem) {
      this.fault = problem instanceof Error ? problem.message : String(problem);
    }
  }
}
