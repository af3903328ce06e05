// The service: its state, settings, limits and kill switch.

import type { Rest } from '../link/rest';
import type { Ready, Risk, Version } from '../model/types';

const POLL_MS = 1_000;
/** Limits change rarely, so only every fifth poll fetches them. */
const RISK_EVERY = 5;

export class ServiceStore {
  ready: Ready | null = $state.raw(null);
  version: Version | null = $state.raw(null);
  risk: Risk | null = $state.raw(null);
  params: Record<string, string> = $state.raw({});
  private pollCount = 0;

  constructor(private readonly rest: Rest) {}

  /** Starts polling. The returned function stops it. */
  watch(): () => void {
    const timer = setInterval(() => void this.refresh(), POLL_MS);
    return () => clearInterval(timer);
  }

  /** Fetches state, version and settings. Returns when the settings have arrived or failed. */
  async load(): Promise<void> {
    const params = this.rest.get<Record<string, string>>('/rest/config-params');
    void this.refresh();
    this.rest.get<Version>('/version').then(
      (version) => (this.version = version),
      () => {},
    );
    try {
      this.params = await params;
    } catch {
      // The defaults apply.
    }
  }

  async refresh(): Promise<void> {
    try {
      // A response 503 has the same body, with the reason.
      const ready = (await this.rest.call('GET', '/health/ready', {}, 503)) as Ready | Pick<Ready, 'ready'>;
      // Without a login the response says only whether the service is ready.
      if ('adapters' in ready) this.ready = ready;
      if (this.pollCount++ % RISK_EVERY === 0) this.risk = await this.rest.get<Risk>('/rest/ext/risk');
    } catch {
      // The header shows a lost connection.
    }
  }

  /** Changes limits of the strategy or account that they name. The service checks role and values. */
  async changeLimits(changes: Record<string, unknown>): Promise<void> {
    await this.rest.put('/rest/ext/risk', { body: changes });
    this.pollCount = 0;
    await this.refresh();
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

  /**
   * Shards that have not applied the last change of the kill switch, because their servers are
   * away.
   */
  get unconfirmed(): number[] {
    return this.ready?.killSwitchUnconfirmed ?? [];
  }

  /** Whether orders go to a real venue: an adapter is not the simulated one. */
  get isLive(): boolean {
    return this.ready?.adapters.some((adapter) => adapter.name !== 'SIM') ?? false;
  }

  /** First segment of the status topics of orders. */
  get orderTopicPrefix(): string {
    return this.params['broker.orderTopicPrefix'] ?? 'pitlane';
  }

  /** Limit of market data in events per second; 0: no limit. */
  get throttle(): number {
    const rate = Number(this.params['broker.maxRatePerConnection'] ?? '0');
    return rate > 0 ? rate : 0;
  }
}
