// The service itself: how it stands, what it is set to, its limits and kill switch.

import type { Rest } from '../link/rest';
import type { Ready, Risk, Version } from '../model/types';

const POLL_MS = 1_000;
/** Limits change by hand: seldom. */
const RISK_EVERY = 5;

export class ServiceStore {
  ready: Ready | null = $state.raw(null);
  version: Version | null = $state.raw(null);
  risk: Risk | null = $state.raw(null);
  params: Record<string, string> = $state.raw({});
  private pollCount = 0;

  constructor(private readonly rest: Rest) {}

  /** Until the answer is called. */
  watch(): () => void {
    const timer = setInterval(() => void this.refresh(), POLL_MS);
    return () => clearInterval(timer);
  }

  /** Answers when the settings are there, or cannot be had. */
  async load(): Promise<void> {
    const params = this.rest.get<Record<string, string>>('/rest/config-params');
    void this.refresh();
    this.rest.get<Version>('/version').then((version) => (this.version = version), () => {});
    try {
      this.params = await params;
    } catch {
      // What hangs on them goes by their first values.
    }
  }

  async refresh(): Promise<void> {
    try {
      // 503 says why it is not ready, in the same words.
      this.ready = (await this.rest.call('GET', '/health/ready', {}, 503)) as Ready;
      if (this.pollCount++ % RISK_EVERY === 0) this.risk = await this.rest.get<Risk>('/rest/ext/risk');
    } catch {
      // The link's sign tells of it.
    }
  }

  async kill(on: boolean): Promise<void> {
    if (on) await this.rest.post('/rest/ext/kill-switch');
    else await this.rest.delete('/rest/ext/kill-switch');
    this.pollCount = 0;
    await this.refresh();
  }

  get isKilled(): boolean {
    return this.ready?.killSwitch ?? false;
  }

  /** Shards that have not applied the last word on the kill switch: their servers are away. */
  get unconfirmed(): number[] {
    return this.ready?.killSwitchUnconfirmed ?? [];
  }

  /** Whether orders leave the house: some venue is not the simulated one. */
  get isLive(): boolean {
    return this.ready?.adapters.some((adapter) => adapter.name !== 'SIM') ?? false;
  }

  /** With which status topics of orders begin. */
  get orderTopicPrefix(): string {
    return this.params['broker.orderTopicPrefix'] ?? 'pitlane';
  }

  /** Events per second that market data are held to; 0: not at all. */
  get throttle(): number {
    const rate = Number(this.params['broker.maxRatePerConnection'] ?? '0');
    return rate > 0 ? rate : 0;
  }
}
