// All stores of the page, their dependencies, and the reaction to a lost or new connection.

import { StompBroker } from '../link/broker';
import { Problem, Rest } from '../link/rest';
import { ApiStore } from './api.svelte';
import { CashStore } from './cash.svelte';
import { ClockStore } from './clock.svelte';
import { ConfirmStore } from './confirm.svelte';
import { DraftStore } from './draft.svelte';
import { FillSigns } from './fillSigns';
import { LatencyStore } from './latencies.svelte';
import { LinkStore } from './link.svelte';
import { LogStore } from './log.svelte';
import { MarketStore } from './market.svelte';
import { NoticeStore } from './notices.svelte';
import { OrderStore } from './orders.svelte';
import { Poll } from './poll.svelte';
import { PortfolioStore } from './portfolio.svelte';
import { PositionStore, isFlat, valuationAt } from './positions.svelte';
import { ReferenceStore } from './reference.svelte';
import { ServiceStore } from './service.svelte';
import { SettingsStore } from './settings.svelte';
import { StrategyStore } from './strategies.svelte';
import { TopicStore } from './topics.svelte';
import { TradeStore } from './trades.svelte';
import { TransactionStore } from './transactions.svelte';
import { formatDecimal } from '../model/decimal';
import type { LimitUse, Order, ProfitDay, ProfitSum, Session } from '../model/types';

const SESSIONS_MS = 2_000;
const RISK_MS = 2_000;
const PROFIT_DAYS_MS = 30_000;
const RETRY_MS = 1_000;
/** Interval at which the page reads orders again that are pending for long. */
const PENDING_MS = 2_000;
/** Interval at which the page checks for heart-beats. */
const SILENCE_MS = 500;
/** Open positions whose prices the page listens to; the service values the others. */
const POSITIONS_MAX = 500;
/** Longest time that later requests wait for the first prices: there may be none. */
const PRICES_MS_MAX = 1_000;

export class AppStore {
  readonly rest = new Rest();
  readonly broker = new StompBroker(brokerUrl(), () => this.rest.connectHeaders());
  /**
   * A second connection for the selected security, because the service limits market data per
   * connection. It is open while the first one is.
   */
  readonly focusBroker = new StompBroker(brokerUrl(), () => this.rest.connectHeaders());
  readonly clock = new ClockStore();
  readonly confirm = new ConfirmStore();
  readonly settings = new SettingsStore();
  readonly notices = new NoticeStore();
  readonly link = new LinkStore(this.rest);
  readonly reference = new ReferenceStore(this.rest);
  readonly service = new ServiceStore(this.rest);
  readonly market = new MarketStore(this.rest, this.broker, this.focusBroker, this.reference);
  readonly orders = new OrderStore(this.rest, this.broker);
  readonly positions = new PositionStore(this.rest, this.broker);
  readonly transactions = new TransactionStore(this.rest, this.broker);
  readonly trades = new TradeStore(this.rest, this.focusBroker);
  readonly cash = new CashStore(this.rest, this.broker);
  readonly strategies = new StrategyStore(this.rest, this.broker);
  readonly log = new LogStore(this.rest, this.broker);
  readonly topics = new TopicStore(this.broker);
  readonly api = new ApiStore(this.rest);
  readonly latencies = new LatencyStore(this.rest);
  readonly sessions = new Poll<Session[]>(this.rest, '/rest/ext/session', SESSIONS_MS);
  readonly limitUses = new Poll<LimitUse[]>(this.rest, '/rest/ext/risk/use', RISK_MS);
  readonly profitDays = new Poll<ProfitDay[]>(
    this.rest,
    () => {
      const { strategy } = this.settings.saved;
      return `/rest/ext/profit/days${strategy === '' ? '' : `?strategy=${encodeURIComponent(strategy)}`}`;
    },
    PROFIT_DAYS_MS,
  );
  readonly portfolio = new PortfolioStore(this.rest, (strategy, base) =>
    this.positions.isComplete ? this.grossExposure(strategy, base) : null,
  );
  readonly draft = new DraftStore(this);
  readonly fillSigns = new FillSigns(
    () => {
      const { sound, desktopNotes, strategy } = this.settings.saved;
      return { sound, note: desktopNotes, strategy };
    },
    (securityId) => this.reference.symbol(securityId),
  );

  private hasWaited = $state(false);
  private hasStarted = false;
  /** Counts the loads of reference data: only the newest takes effect. */
  private referenceRun = 0;

  /** Starts the page. Returns immediately; panels fill as responses arrive. */
  start(): void {
    this.broker.onConnected = () => this.market.reset();
    this.broker.onUp = () => this.connected();
    this.broker.onDown = (reason) => {
      void this.focusBroker.stop();
      if (!this.link.loginNeeded) this.link.down(reason);
    };
    this.orders.onTurnedDown = (order, what) => this.reportTurnedDown(order, what);
    this.transactions.onNew = (row) => this.fillSigns.handle(row);
    this.rest.onDate = (date) => this.clock.learn(date);
    this.broker.onRefused = () => (this.link.isRefused = true);
    setTimeout(() => (this.hasWaited = true), PRICES_MS_MAX);
    void this.connect();
  }

  /** Connects again after a refused login, at the request of the user. */
  async retry(): Promise<void> {
    this.link.isRefused = false;
    await this.connect();
  }

  /** Whether the first prices are visible, so that the remaining parts may be fetched. */
  get isFirstViewReady(): boolean {
    return this.hasWaited || this.market.hasPrices;
  }

  /**
   * Connects after a login, or at the start if none is needed. All requests are sent at once, so
   * that prices appear early. With a login, one request checks it first: ten concurrent requests
   * with a wrong secret look like an attack.
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
      // The service does not respond yet; it may be starting.
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
    this.clock.watch();
    setInterval(() => void this.orders.followPending(), PENDING_MS);
    setInterval(
      () => this.link.observeSilence(Math.max(this.broker.checkSilence(), this.focusBroker.checkSilence())),
      SILENCE_MS,
    );
  }

  /** Selects the security that all panels show. */
  selectSecurity(securityId: number | null): void {
    this.settings.saved.securityId = securityId;
    this.draft.selectSecurity(securityId);
    this.market.select(securityId);
  }

  /** Profit of the day of the selected strategy, or of all. A strategy without trades has none. */
  get profitToday(): ProfitSum | undefined {
    const { strategy } = this.settings.saved;
    const { profit } = this.portfolio;
    if (!profit || strategy === '') return profit?.total;
    const found = profit.strategies.find((sum) => sum.strategyName === strategy);
    return found ?? { strategyName: strategy, grossPL: '0', fees: '0', netPL: '0', missing: 0 };
  }

  /** Runs the work and shows a notice of its outcome, such as `Cancel BUY 5 AAPL: sent`. */
  async attempt(what: string, work: () => Promise<unknown>, done = 'done'): Promise<boolean> {
    try {
      await work();
      this.notices.done(`${what}: ${done}`);
      return true;
    } catch (problem) {
      this.notices.failed(what, problem);
      return false;
    }
  }

  /**
   * Securities whose prices value the open positions: their own, and the currency pairs that convert
   * them.
   */
  get valuationIds(): number[] {
    const held = this.positions.rows.filter((row) => !isFlat(row));
    const base = this.portfolio.now?.baseCurrency;
    const currencies = new Set(held.map((row) => row.currency).filter((currency) => currency !== base));
    const pairs = this.reference.securities.filter(
      ({ type, currency, baseCurrency }) =>
        type === 'FOREX' &&
        ((currencies.has(baseCurrency) && currency === base) || (currencies.has(currency) && baseCurrency === base)),
    );
    return [...new Set([...pairs.map(({ id }) => id), ...held.map((row) => row.securityId)])].slice(0, POSITIONS_MAX);
  }

  /** Shows that an order was refused or cancelled, or a request for it, by the venue or a rule. */
  private reportTurnedDown(order: Order, what: string): void {
    const { side, quantity, filledQuantity, symbol, securityId, status, reason } = order;
    const name = `${side} ${formatDecimal(quantity)} ${symbol ?? this.reference.symbol(securityId)}`;
    const filled = `${formatDecimal(filledQuantity)} filled`;
    if (what !== '') this.notices.warn(`${what} ${name}: refused by the venue`, 'The order continues unchanged.');
    else if (status === 'REJECTED') this.notices.warn(`${name}: rejected`, `Its reason: ${reason}.`);
    else this.notices.warn(`${name}: cancelled, ${filled}`, `Its reason: ${reason}.`);
  }

  private connected(): void {
    // All requests at once; the link counts as up immediately.
    for (const store of [this.positions, this.transactions, this.cash, this.strategies, this.log]) void store.restart();
    void this.portfolio.refresh();
    if (this.link.state === 'DOWN') {
      void this.service.load();
      void this.loadReference();
    }
    this.link.up();
    this.focusBroker.start();
  }

  /** Fetches reference data, with retries, and selects a known security. */
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
      else if (status !== 401) this.notices.warn('Reference data', String(problem));
    }
  }

  /** Returns the sum of absolute position values in the base currency, where prices are known. */
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

  /** Returns the value of one unit of a currency in the base currency; 0 if unknown. */
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

/** Returns the address of STOMP on the host of the page. */
function brokerUrl(): string {
  const { protocol, host } = globalThis.location ?? { protocol: 'http:', host: 'localhost' };
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/stomp`;
}

export const app = new AppStore();
