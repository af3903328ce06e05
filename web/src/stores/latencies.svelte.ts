// Latencies of each stage, with a history of some minutes.

import type { Rest } from '../link/rest';
import type { Stage } from '../model/types';
import { Poll } from './poll.svelte';

const POLL_MS = 1_000;
/** Points of five minutes. */
const POINTS_MAX = 300;

/** Percentiles of one stage at one time, in nanoseconds. */
export interface StagePoint {
  at: number;
  p50: number;
  p99: number;
  max: number;
}

export const keyOf = (stage: Stage): string => `${stage.thread} ${stage.stage}`;

export class LatencyStore {
  private readonly poll: Poll<Stage[]>;
  private history = new Map<string, StagePoint[]>();

  constructor(rest: Rest) {
    this.poll = new Poll(rest, '/rest/ext/latency', POLL_MS);
  }

  get stages(): Stage[] {
    return this.poll.value ?? [];
  }

  get error(): string {
    return this.poll.error;
  }

  watch(): () => void {
    return this.poll.watch();
  }

  /** Adds the newest latencies to the history. */
  record(stages: Stage[]): void {
    const at = Date.now() / 1000;
    for (const stage of stages) {
      const points = this.history.get(keyOf(stage)) ?? [];
      points.push({ at, p50: stage.p50Ns, p99: stage.p99Ns, max: stage.maxNs });
      if (points.length > POINTS_MAX) points.shift();
      this.history.set(keyOf(stage), points);
    }
  }

  points(key: string): StagePoint[] {
    return this.history.get(key) ?? [];
  }
}
