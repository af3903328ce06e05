// All stores, joined: who needs whom, and what happens when the link comes and goes.

import { StompBroker } from '../link/broker';
import { Problem, Rest } from '../link/rest';
import { ApiStore } from './api.svelte';
import { CashStore } from './cash.svelte';
import { DraftStore } from './draft.svelte';
import { LatencyStore } from './latencies.svelte';
import { LinkStore } from './link.svelte';
import { LogStore } from './log.svelte';
import { MarketStore } from './market.svelte';
import { NoticeStore } from './notices.svelte';
import { OrderStore } from './orders.svelte';
import { Poll } from './poll.svelte';
import { PortfolioStore } from './portfolio.svelte';
import { PositionStore, valuationAt } from './positions.svelte';
import { ReferenceStore } from './reference.svelte';
import { ServiceStore } from './service.svelte';
import { SettingsStore } from './settings.svelte';
import { StrategyStore } from './strategies.svelte';
import { TopicStore } from './topics.svelte';
import { TransactionStore } from './transactions.svelte';
import type { Session } from '../model/types';

const SESSIONS_MS = 2_000;
const RETRY_MS = 1_000;
/** What is fetched later waits for prices, but not longer than this: there may be none. */
const PRICES_MS_MAX = 1_000;

export class AppStore {
  readonly rest = new Rest();
  readonly broker = new StompBroker(brokerUrl(), () => this.rest.connectHeaders());
  readonly settings = new SettingsStore();
  readonly notices = new NoticeStore();
  readonly link = new LinkStore(this.rest);
  readonly reference = new ReferenceStore(this.rest);
  readonly service = new ServiceStore(this.rest);
  readonly market = new MarketStore(this.rest, this.broker, this.reference);
  readonly orders = new OrderStore(this.rest, this.broker);
  readonly positions = new PositionStore(this.rest, this.broker);
  readonly transactions = new TransactionStore(this.rest, this.broker);
  readonly cash = new CashStore(this.rest, this.broker);
  readonly strategies = new StrategyStore(this.rest, this.broker);
  readonly log = new LogStore(this.broker);
  readonly topics = new TopicStore(this.broker);
  readonly api = new ApiStore(this.rest);
  readonly latencies = new LatencyStore(this.rest);
  readonly sessions = new Poll<Session[]>(this.rest, '/rest/ext/session', SESSIONS_MS);
  readonly portfolio = new PortfolioStore(this.rest, (strategy, base) => this.grossExposure(strategy, base));
  readonly draft = new DraftStore(this);

  private hasWaited = $state(false);
  private hasStarted = false;
  /** Counts the options for reference data: only the newest is followed. */
  private referenceRun = 0;

  /** Opens the page. Returns at once; panels fill as answers come. */
  start(): void {
    this.broker.onConnected = () => this.market.reset();
    this.broker.onUp = () => this.connected();
    this.broker.onDown = (reason) => {
      if (!this.link.loginNeeded) this.link.down(reason);
    };
    this.broker.onRefused = () => (this.link.isRefused = true);
    setTimeout(() => (this.hasWaited = true), PRICES_MS_MAX);
    void this.connect();
  }

  /** After a refused login: tries once more, when the reader asks for it. */
  async retry(): Promise<void> {
    this.link.isRefused = false;
    await this.connect();
  }

  /** Whether what a reader looks for first is there, so that the rest may be fetched. */
  get isFirstViewReady(): boolean {
    return this.hasWaited || this.market.hasPrices;
  }

  /**
   * After a login, and at the start where none is needed. Nothing waits for anything else, so that prices are there soon; only who
   * shows a secret asks first whether it is right: a wrong one, shown ten times at once, looks like somebody who guesses.
   */
  async connect(): Promise<void> {
    if (this.link.hasLogin) await this.link.loadIdentity();
    if (this.link.loginNeeded) return;
    this.broker.start();
    void this.loadReference();
    const params = this.service.load();
    if (!this.link.hasLogin) await this.link.loadIdentity();
    if (this.link.loginNeeded) {
      await this.broker.stop();
      return;
    }
    if (!this.link.identity) {
      // Not there yet: a service that is just starting.
      this.link.down('');
      setTimeout(() => void this.connect(), RETRY_MS);
      return;
    }
    await params;
    this.orders.listen(this.service.orderTopicPrefix);
    if (this.hasStarted) return;
    this.hasStarted = true;
    this.service.watch();
    this.market.watch();
    this.portfolio.watch();
  }

  /** The security everything looks at. */
  selectSecurity(securityId: number | null): void {
    this.settings.saved.securityId = securityId;
    this.draft.selectSecurity(securityId);
    this.market.showDepth(securityId);
  }

  /** Does it, and tells what came of it. */
  async attempt(what: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.notices.good(what);
      return true;
    } catch (problem) {
      this.notices.bad(`${what}: refused`, problem);
      return false;
    }
  }

  private connected(): void {
    // Everything at once: the link is up when the first of it is there.
    for (const store of [this.positions, this.transactions, this.cash, this.strategies]) void store.restart();
    void this.portfolio.refresh();
    if (this.link.state === 'DOWN') {
      void this.service.load();
      void this.loadReference();
    }
    this.link.up();
  }

  /** Fetches reference data, until they come, and looks at a security that is among them. */
  private async loadReference(): Promise<void> {
    const run = ++this.referenceRun;
    try {
      await this.reference.load();
      if (run !== this.referenceRun) return;
      this.market.createQuotes();
      const { securityId } = this.settings.saved;
      const known = this.reference.security(securityId) ? securityId : (this.reference.securities[0]?.id ?? null);
      if (known !== this.draft.draft.securityId) this.selectSecurity(known);
    } catch (problem) {
      if (run !== this.referenceRun) return;
      const { status } = problem instanceof Problem ? problem : { status: NaN };
      if (status === 0 || status === 503) setTimeout(() => void this.loadReference(), RETRY_MS);
      else if (status !== 401) this.notices.bad('Reference data', problem);
    }
  }

  /** Sizes of all positions without their signs, in the base currency, as far as there are prices. */
  private grossExposure(strategy: string, base: string): number {
    let sum = 0;
    for (const position of this.positions.rows) {
      if (strategy !== '' && position.strategyName !== strategy) continue;
      const security = this.reference.security(position.securityId);
      const { marketValue } = valuationAt(position, this.market.quote(position.securityId)?.tick, security);
      sum += Math.abs(Number(marketValue ?? 0)) * this.exchangeRate(position.currency ?? base, base);
    }
    return sum;
  }

  /** What one unit of a currency is worth in the base; 0 if nobody knows. */
  private exchangeRate(currency: string, base: string): number {
    if (currency === base) return 1;
    for (const { security, tick } of this.market.quotes) {
      if (security.type !== 'FOREX' || tick?.bid === undefined) continue;
      if (security.baseCurrency === currency && security.currency === base) return Number(tick.bid);
      if (security.baseCurrency === base && security.currency === currency) return 1 / Number(tick.bid);
    }
    return 0;
  }
}

/** Beside the page. */
function brokerUrl(): string {
  const { protocol, host } = globalThis.location ?? { protocol: 'http:', host: 'localhost' };
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/stomp`;
}

export const app = new AppStore();
