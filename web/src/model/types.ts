// The value objects of REST and topics. Decimals are text, see decimal.ts. Members that may be
// absent are optional.

import type { Decimal } from './decimal';

/** RFC 3339 in UTC, with up to nine decimal places of the second. */
export type Instant = string;

export interface Account {
  id: number;
  name: string;
  active: boolean;
  adapterType: string;
}

export type SecurityType = 'STOCK' | 'FUTURE' | 'OPTION' | 'FOREX' | 'INDEX' | 'COMMODITY' | 'BOND' | 'FUND' | 'CRYPTO';

export interface Security {
  id: number;
  symbol: string;
  description: string;
  type: SecurityType;
  securityFamilyId: number;
  exchangeId: number;
  currency: string;
  isin?: string;
  underlyingId?: number;
  expiration?: string;
  strike?: Decimal;
  optionType?: 'CALL' | 'PUT';
  baseCurrency?: string;
  tickSize: Decimal;
  lotSize: Decimal;
  contractSize: Decimal;
  tradeable: boolean;
}

export interface Exchange {
  id: number;
  name: string;
  mic: string;
  timeZone: string;
  open: string;
  close: string;
  adapterType: string;
}

export const PHASES = ['INIT', 'PREFEED', 'START', 'RUNNING', 'STOP', 'EXIT'] as const;
export type Phase = (typeof PHASES)[number];

export interface Strategy {
  id: number;
  name: string;
  autoActivate: boolean;
  phase: Phase;
  mode: 'REAL_TIME' | 'SIMULATION';
  /** Reason of the stop, if the strategy failed. */
  reason?: string;
}

export const ORDER_TYPES = ['MARKET', 'LIMIT', 'STOP', 'STOP_LIMIT'] as const;
export type OrderType = (typeof ORDER_TYPES)[number];
export type Side = 'BUY' | 'SELL';
export const TIFS = ['DAY', 'GTC', 'ATO', 'IOC', 'FOK', 'GTD', 'ATC'] as const;
export type Tif = (typeof TIFS)[number];

export type OrderStatus =
  | 'PENDING_NEW'
  | 'NEW'
  | 'PARTIALLY_FILLED'
  | 'FILLED'
  | 'PENDING_CANCEL'
  | 'CANCELED'
  | 'PENDING_REPLACE'
  | 'REJECTED'
  | 'EXPIRED';

/** Results of a cancel of many orders. */
export interface CanceledOrders {
  canceled: number;
  refused: number;
  /** Orders that ended otherwise first. */
  finished: number;
  /** Orders whose venue has not answered yet. */
  pending: number;
}

export interface Order {
  intId: string;
  origIntId?: string;
  extId?: string;
  type: OrderType;
  side: Side;
  quantity: Decimal;
  limit?: Decimal;
  stop?: Decimal;
  tif: Tif;
  tifDate?: Instant;
  strategyId: number;
  strategyName?: string;
  accountId: number;
  securityId: number;
  symbol?: string;
  exchangeId?: number;
  /** Adapter that leads to its venue; SIM is the simulated one. */
  venue?: string;
  exchangeOrder: boolean;
  /** Instructions for the venue: codes of FIX 18. */
  execInst?: string;
  /** Smallest quantity to be filled. */
  minQty?: Decimal;
  /** Largest quantity that the venue shows. */
  maxFloor?: Decimal;
  status: OrderStatus;
  filledQuantity: Decimal;
  remainingQuantity: Decimal;
  avgPrice?: Decimal;
  lastQuantity?: Decimal;
  lastPrice?: Decimal;
  reason?: string;
  /** REST, STRATEGY, SERVER, or `FIX:` and the name of the session. */
  source: string;
  /** The venue disconnected before it responded; the status is the last known one. */
  unknown?: boolean;
  dateTime: Instant;
  lastUpdate: Instant;
  /** Senders, which only REST tells. */
  sentBy?: Sender;
  modifiedBy?: Sender;
  canceledBy?: Sender;
}

/** Login, address and session that sent a request. */
export interface Sender {
  login?: string;
  address?: string;
  protocol: string;
  session?: string;
}

/** What happened to an order, oldest first. */
export interface OrderChanges {
  intId: string;
  /** Time of submission. */
  dateTime: Instant;
  /** Whether these are all changes. */
  complete: boolean;
  changes: readonly {
    dateTime: Instant;
    execType: string;
    status: OrderStatus;
    reason?: string;
    quantity: Decimal;
    filledQuantity: Decimal;
    lastQuantity?: Decimal;
    lastPrice?: Decimal;
    limit?: Decimal;
    stop?: Decimal;
  }[];
}

export interface Position {
  id: number | string;
  strategyId: number;
  strategyName?: string;
  securityId: number;
  symbol?: string;
  quantity: Decimal;
  avgPrice?: Decimal;
  marketPrice?: Decimal;
  marketValue?: Decimal;
  realizedPL: Decimal;
  unrealizedPL?: Decimal;
  currency?: string;
}

export const TRANSACTION_TYPES = [
  'BUY',
  'SELL',
  'EXPIRATION',
  'CREDIT',
  'DEBIT',
  'INTEREST',
  'FEES',
  'REFUND',
  'REBALANCE',
] as const;
export type TransactionType = (typeof TRANSACTION_TYPES)[number];

export interface Transaction {
  id: number | string;
  uuid: string;
  dateTime: Instant;
  type: TransactionType;
  strategyId: number;
  strategyName?: string;
  accountId: number;
  securityId?: number;
  quantity?: Decimal;
  price: Decimal;
  commission: Decimal;
  currency: string;
  orderIntId?: string;
  extId?: string;
  description?: string;
}

export interface CashBalance {
  strategyId: number;
  strategyName?: string;
  currency: string;
  /** Absent if it exceeds the numeric range. */
  amount?: Decimal;
}

export interface Portfolio {
  strategyName?: string;
  baseCurrency: string;
  netLiquidationValue?: Decimal;
  cash?: Decimal;
  marketValue?: Decimal;
  realizedPL?: Decimal;
  unrealizedPL?: Decimal;
  holdings: Holding[];
  /** Amounts that are not included in the totals. */
  missing: { what: string; securityId?: number; currency?: string }[];
}

export interface Holding {
  currency: string;
  cash?: Decimal;
  marketValue?: Decimal;
  realizedPL?: Decimal;
  unrealizedPL?: Decimal;
}

/** The limits of one strategy or account. Zero: no limit. */
export interface Limits {
  strategyName?: string;
  accountName?: string;
  tradingEnabled: boolean;
  maxOrderQty: Decimal;
  maxOrderValue: Decimal;
  priceCollarPct: Decimal;
  maxOpenOrders: number;
  maxPosition: Decimal;
  maxOrdersPerS: number;
  duplicateWindowMs: number;
  credit?: Decimal;
  creditCurrency?: string;
}

/** What a strategy or an account uses of its limits. */
export interface LimitUse {
  strategyName?: string;
  accountName?: string;
  openOrders: number;
  /** The largest position that the open orders could lead to; of an account over all strategies. */
  position?: Decimal;
  positionSecurityId?: number;
  /** Of accounts with a credit limit: the credit in use. */
  credit?: Decimal;
  /** Shards that did not answer how much credit is in use. */
  unansweredShards?: number[];
  refusals: LimitRefusals[];
}

/** Orders and modifications that one limit refused in the trading day. */
export interface LimitRefusals {
  reason: string;
  detail: string;
  count: number;
  dateTime: Instant;
  securityId: number;
}

/** Profit of a trading day that has ended. */
export interface ProfitDay {
  tradingDay: string;
  baseCurrency: string;
  total: ProfitSum;
}

/** Profit of a trading day. */
export interface Profit {
  tradingDay?: string;
  baseCurrency: string;
  total: ProfitSum;
  strategies: ProfitSum[];
  rows: ProfitRow[];
}

/** A sum in the base currency. */
export interface ProfitSum {
  strategyName?: string;
  grossPL?: Decimal;
  fees?: Decimal;
  netPL?: Decimal;
  /** Rows that the sums leave out. */
  missing: number;
}

export interface ProfitRow {
  strategyId: number;
  strategyName?: string;
  securityId: number;
  symbol?: string;
  currency: string;
  quantity: Decimal;
  trades: number;
  grossPL?: Decimal;
  fees?: Decimal;
  netPL?: Decimal;
}

/** The value of a portfolio at one time. */
export interface PortfolioSample {
  dateTime: Instant;
  netLiquidationValue?: Decimal;
  marketValue?: Decimal;
  grossExposure?: Decimal;
  realizedPL?: Decimal;
  unrealizedPL?: Decimal;
}

/** Whether a switch is on in all, some or no shards. */
export type SwitchState = 'ALL' | 'SOME' | 'NONE';

export interface Risk {
  killSwitch: boolean;
  limits: Limits[];
  restrictions: { strategyName?: string; accountName?: string; securityId: number }[];
}

export interface Ready {
  ready: boolean;
  phase: string;
  durability: { level: string; journal: string };
  killSwitch: boolean;
  /** Absent in earlier versions of the service. */
  killSwitchState?: SwitchState;
  /** Shards that have not applied the last change of the switch, because their servers are away. */
  killSwitchUnconfirmed?: number[];
  shards: { shard: number; complete: boolean; seq: number }[];
  adapters: { id: number; name: string; connected: boolean }[];
  listeners: { name: string; address: string }[];
  uptimeMs: number;
}

export interface Version {
  name: string;
  version: string;
  commit?: string;
}

export interface Stage {
  thread: string;
  stage: string;
  count: number;
  p50Ns: number;
  p90Ns: number;
  p99Ns: number;
  p999Ns: number;
  maxNs: number;
}

/** A connected session. Its other members depend on the protocol. */
/** Use of a limit that a venue sets. */
export interface VenueLimit {
  name: string;
  intervalS: number;
  used: number;
  allowed: number;
}

export interface Session {
  id: number | string;
  [name: string]: unknown;
}

export type Role = 'read' | 'trade' | 'admin';

export interface Identity {
  name: string;
  role: Role;
}

/** RFC 9457. */
export interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  requestId?: string;
}

// Messages of topics. Every message begins with these three members.

export interface Stamp {
  type: string;
  /** Sequence number of the shard; it increases. */
  seq: number;
  /** Nanoseconds since the epoch, as text. */
  ts: string;
}

export interface Tick extends Stamp {
  securityId: number;
  symbol?: string;
  feed?: string;
  bid?: Decimal;
  bidSize?: Decimal;
  ask?: Decimal;
  askSize?: Decimal;
  last?: Decimal;
  lastSize?: Decimal;
  volume: Decimal;
  dateTime: Instant;
}

export interface Level {
  price: Decimal;
  size: Decimal;
}

export interface Book extends Stamp {
  securityId: number;
  bids: Level[];
  asks: Level[];
  dateTime: Instant;
}

/** A bar of the history; its members for the chart. */
export interface HistoryBar {
  dateTime: Instant;
  open: Decimal;
  high: Decimal;
  low: Decimal;
  close: Decimal;
  volume: Decimal;
}

/** A tick of the history. Its last price is absent if nothing was traded since the one before. */
export type HistoryTick = Pick<Tick, 'bid' | 'ask' | 'last' | 'lastSize' | 'dateTime'>;

/** The prices of a trading day and the close of the one before; its members for changes. */
export interface DayQuote {
  securityId: number;
  open?: Decimal;
  previousClose?: Decimal;
}

export interface BarMessage extends Stamp {
  securityId: number;
  size: string;
  open: Decimal;
  high: Decimal;
  low: Decimal;
  close: Decimal;
  volume: Decimal;
  dateTime: Instant;
}

export interface OrderStatusMessage extends Stamp {
  intId: string;
  origIntId?: string;
  extId?: string;
  strategyName?: string;
  status: OrderStatus;
  execType: string;
  filledQuantity: Decimal;
  remainingQuantity: Decimal;
  avgPrice?: Decimal;
  lastQuantity?: Decimal;
  lastPrice?: Decimal;
  reason?: string;
  securityId: number;
  symbol?: string;
  side: Side;
  quantity: Decimal;
  accountId: number;
  unknown?: boolean;
}

/** An OrderVO, with its `type` as `orderType`. */
export type OrderMessage = Stamp & Omit<Order, 'type'> & { orderType: OrderType };

export type TransactionMessage = Stamp & Omit<Transaction, 'type'> & { transactionType: TransactionType };
export type PositionMessage = Stamp & Position;
export type CashMessage = Stamp & CashBalance;

/** A warning or an error of the service. */
export interface LogEvent {
  /** Nanoseconds since the epoch, as text. */
  ts: string;
  level: 'WARN' | 'ERROR';
  logger: string;
  message: string;
  fields: Record<string, string>;
}
export type LogMessage = Stamp & LogEvent;

export interface LifecycleMessage extends Stamp {
  strategyId: number;
  strategyName: string;
  phase: Phase;
  reason?: string;
}

export interface SubscriptionMessage extends Stamp {
  strategyName?: string;
  securityId: number;
  subscribe: boolean;
  subscribers: number;
}

export interface SessionMessage extends Stamp {
  name: string;
  state: 'DISCONNECTED' | 'CONNECTED' | 'LOGGED_ON' | 'SUBSCRIBED';
}
