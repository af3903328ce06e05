"""Responses of the service as frozen values.

Amounts are `Decimal`, times are `datetime` with a time zone, and an absent value is None. The
annotations use `Optional` instead of `X | None`, because they are evaluated at run time and Python
3.9 does not support the other form.
"""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Mapping, Optional, Tuple, Union

from .enums import (
    Mode,
    OptionType,
    OrderStatus,
    OrderType,
    Phase,
    Role,
    SecurityType,
    Side,
    SwitchState,
    TimeInForce,
    TransactionType,
)


@dataclass(frozen=True)
class Account:
    id: int
    name: str
    active: bool
    adapter_type: str
    broker: str
    strategy_ids: Optional[Tuple[int, ...]] = None


@dataclass(frozen=True)
class Exchange:
    """An exchange.

    `open` and `close` are HH:MM:SS in `time_zone`; if they are equal, it is open all day.
    """

    id: int
    name: str
    mic: str
    time_zone: str
    open: str
    close: str
    adapter_type: str


@dataclass(frozen=True)
class SecurityFamily:
    id: int
    name: str
    symbol_root: str
    exchange_id: int
    currency: str
    contract_size: Decimal
    tick_size: Decimal
    lot_size: Decimal
    commission: Decimal
    tradeable: bool
    expirable: bool


@dataclass(frozen=True)
class Security:
    id: int
    symbol: str
    description: str
    type: SecurityType
    security_family_id: int
    exchange_id: int
    currency: str
    tick_size: Decimal
    lot_size: Decimal
    contract_size: Decimal
    tradeable: bool
    isin: Optional[str] = None
    underlying_id: Optional[int] = None
    expiration: Optional[date] = None
    strike: Optional[Decimal] = None
    option_type: Optional[OptionType] = None
    base_currency: Optional[str] = None


SecurityRef = Union[int, str, Security]
"""A security in a call: its id, its symbol, or the security itself."""


@dataclass(frozen=True)
class Forex(Security):
    """A currency pair: `base_currency` is bought with `transaction_currency`."""

    transaction_currency: str = ""


@dataclass(frozen=True)
class StrategyInfo:
    """A strategy as the service knows it; `pitlane.Strategy` is the class for authors."""

    id: int
    name: str
    auto_activate: bool
    phase: Phase
    mode: Mode
    # Reason of the stop, if the strategy failed.
    reason: Optional[str] = None


@dataclass(frozen=True)
class Sender:
    """The sender of an order, a modification or a cancel.

    `protocol` is REST, FIX, STOMP, STRATEGY, INTERNAL or UNLISTED.
    """

    protocol: str
    login: Optional[str] = None
    address: Optional[str] = None
    session: Optional[str] = None


@dataclass(frozen=True)
class CanceledOrders:
    """Results of a cancel of many orders.

    `finished` orders ended otherwise first, such as by a fill. `reasons` has the codes of shards
    that did not execute the request; `complete` is true if all did and no order is pending.
    """

    canceled: int
    refused: int
    finished: int
    pending: int
    complete: bool
    reasons: list[str]


@dataclass(frozen=True)
class Order:
    """The current state of an order.

    A modification gives it a new `int_id`; `orig_int_id` is the previous.
    """

    int_id: str
    type: OrderType
    side: Side
    quantity: Decimal
    tif: TimeInForce
    strategy_id: int
    account_id: int
    security_id: int
    exchange_order: bool
    status: OrderStatus
    filled_quantity: Decimal
    remaining_quantity: Decimal
    source: str
    date_time: datetime
    last_update: datetime
    limit: Optional[Decimal] = None
    stop: Optional[Decimal] = None
    tif_date: Optional[datetime] = None
    strategy_name: Optional[str] = None
    symbol: Optional[str] = None
    exchange_id: Optional[int] = None
    venue: Optional[str] = None
    avg_price: Optional[Decimal] = None
    last_quantity: Optional[Decimal] = None
    last_price: Optional[Decimal] = None
    orig_int_id: Optional[str] = None
    reason: Optional[str] = None
    unknown: Optional[bool] = None
    sent_by: Optional[Sender] = None
    modified_by: Optional[Sender] = None
    canceled_by: Optional[Sender] = None

    @property
    def is_open(self) -> bool:
        return not self.status.is_finished


@dataclass(frozen=True)
class Position:
    """A position. A `quantity` above zero is long, below zero short."""

    id: int
    strategy_id: int
    security_id: int
    quantity: Decimal
    realized_pl: Decimal
    strategy_name: Optional[str] = None
    symbol: Optional[str] = None
    avg_price: Optional[Decimal] = None
    market_price: Optional[Decimal] = None
    market_value: Optional[Decimal] = None
    unrealized_pl: Optional[Decimal] = None
    currency: Optional[str] = None


@dataclass(frozen=True)
class Transaction:
    """A transaction. `price` is the price per unit of a trade, or the amount of a cash transfer."""

    id: int
    uuid: str
    date_time: datetime
    type: TransactionType
    strategy_id: int
    account_id: int
    price: Decimal
    commission: Decimal
    currency: str
    strategy_name: Optional[str] = None
    security_id: Optional[int] = None
    quantity: Optional[Decimal] = None
    order_int_id: Optional[str] = None
    ext_id: Optional[str] = None
    description: Optional[str] = None


@dataclass(frozen=True)
class CashBalance:
    strategy_id: int
    currency: str
    strategy_name: Optional[str] = None
    amount: Optional[Decimal] = None


@dataclass(frozen=True)
class Holding:
    """The part of a portfolio in one currency."""

    currency: str
    cash: Optional[Decimal] = None
    market_value: Optional[Decimal] = None
    realized_pl: Optional[Decimal] = None
    unrealized_pl: Optional[Decimal] = None


@dataclass(frozen=True)
class MissingAmount:
    """An amount that is not included in the totals of a portfolio, and the reason."""

    what: str
    currency: Optional[str] = None
    security_id: Optional[int] = None


@dataclass(frozen=True)
class Portfolio:
    base_currency: str
    holdings: Tuple[Holding, ...]
    missing: Tuple[MissingAmount, ...]
    strategy_name: Optional[str] = None
    net_liquidation_value: Optional[Decimal] = None
    cash: Optional[Decimal] = None
    market_value: Optional[Decimal] = None
    realized_pl: Optional[Decimal] = None
    unrealized_pl: Optional[Decimal] = None


@dataclass(frozen=True)
class PortfolioSample:
    """The value of a portfolio at one time, in the base currency."""

    date_time: datetime
    net_liquidation_value: Optional[Decimal] = None
    market_value: Optional[Decimal] = None
    gross_exposure: Optional[Decimal] = None
    realized_pl: Optional[Decimal] = None
    unrealized_pl: Optional[Decimal] = None


@dataclass(frozen=True)
class ProfitSum:
    """Profit of a strategy, or of all, in the base currency; `missing` counts what it omits."""

    missing: int
    strategy_name: Optional[str] = None
    gross_pl: Optional[Decimal] = None
    fees: Optional[Decimal] = None
    net_pl: Optional[Decimal] = None


@dataclass(frozen=True)
class ProfitRow:
    """Profit of a strategy in a security, in the currency of the security."""

    strategy_id: int
    security_id: int
    currency: str
    quantity: Decimal
    trades: int
    strategy_name: Optional[str] = None
    symbol: Optional[str] = None
    gross_pl: Optional[Decimal] = None
    fees: Optional[Decimal] = None
    net_pl: Optional[Decimal] = None


@dataclass(frozen=True)
class Profit:
    """Profit of the trading day before and after fees."""

    base_currency: str
    total: ProfitSum
    strategies: Tuple[ProfitSum, ...]
    rows: Tuple[ProfitRow, ...]
    trading_day: Optional[str] = None


@dataclass(frozen=True)
class Limits:
    """Limits of a strategy or an account; zero: no limit.

    In a request, None leaves a limit unchanged.
    """

    strategy_name: Optional[str] = None
    account_name: Optional[str] = None
    trading_enabled: Optional[bool] = None
    max_order_qty: Optional[Decimal] = None
    max_order_value: Optional[Decimal] = None
    price_collar_pct: Optional[Decimal] = None
    max_open_orders: Optional[int] = None
    max_position: Optional[Decimal] = None
    max_orders_per_s: Optional[int] = None
    duplicate_window_ms: Optional[int] = None
    credit: Optional[Decimal] = None
    credit_currency: Optional[str] = None


@dataclass(frozen=True)
class LimitRefusals:
    """Orders and modifications that one limit refused in the trading day."""

    reason: str
    detail: str
    count: int
    date_time: datetime
    security_id: int


@dataclass(frozen=True)
class LimitUse:
    """What a strategy or an account uses of its limits.

    `position` is the largest position that the open orders of a strategy could lead to.
    """

    open_orders: int
    refusals: Tuple[LimitRefusals, ...]
    strategy_name: Optional[str] = None
    account_name: Optional[str] = None
    position: Optional[Decimal] = None
    position_security_id: Optional[int] = None


@dataclass(frozen=True)
class Restriction:
    """A security that a strategy or an account may not trade."""

    security_id: int
    strategy_name: Optional[str] = None
    account_name: Optional[str] = None


@dataclass(frozen=True)
class Unconfirmed:
    """An operator's decision that some shards have not applied, because their servers are away."""

    directive: str
    shards: Tuple[int, ...]
    strategy_name: Optional[str] = None
    account_name: Optional[str] = None
    security_id: Optional[int] = None


@dataclass(frozen=True)
class Confirmation:
    """Whether all shards have applied a switch or limits, or only some.

    The servers of the other shards are away; these shards apply the change when their servers
    return.
    """

    confirmed: SwitchState
    unconfirmed_shards: Tuple[int, ...]


@dataclass(frozen=True)
class Risk:
    """Limits, restrictions and the kill switch.

    `kill_switch` is true if the switch is on in any shard. `kill_switch_state` is the state over
    all shards.
    """

    kill_switch: bool
    limits: Tuple[Limits, ...]
    restrictions: Tuple[Restriction, ...]
    kill_switch_state: Optional[SwitchState] = None
    unconfirmed: Tuple[Unconfirmed, ...] = ()


@dataclass(frozen=True)
class Rates:
    """Rates of market data over WebSocket, in events per second.

    In a request, None leaves one unchanged.
    """

    max_rate_per_connection: Optional[Decimal] = None
    min_rate_per_consumer: Optional[Decimal] = None


@dataclass(frozen=True)
class Adapter:
    id: int
    name: str
    connected: bool
    killed: bool
    exchanges: Tuple[str, ...]


@dataclass(frozen=True)
class Alert:
    """A condition that an operator should look at."""

    date_time: datetime
    alert: str
    shard: int
    reason: str
    detail: str
    int_id: Optional[str] = None
    strategy_name: Optional[str] = None
    security_id: Optional[int] = None
    symbol: Optional[str] = None


@dataclass(frozen=True)
class LoggedEvent:
    """A warning or an error of the service."""

    date_time: datetime
    ts: str
    level: str
    logger: str
    message: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class VenueLimit:
    """A limit of a venue: requests or orders in an interval."""

    name: str
    interval_s: int
    used: int
    allowed: int


@dataclass(frozen=True)
class Session:
    """A FIX, STOMP or WebSocket client of the service, or a venue."""

    id: str
    kind: str
    since: datetime
    state: str
    bytes_in: int
    bytes_out: int
    messages_in: int
    messages_out: int
    queue_bytes: int
    name: Optional[str] = None
    peer: Optional[str] = None
    subscriptions: Optional[int] = None
    slots: Optional[int] = None
    conflated: Optional[int] = None
    backlog: Optional[int] = None
    backlog_bytes: Optional[int] = None
    next_in: Optional[int] = None
    next_out: Optional[int] = None
    round_trip_us: Optional[int] = None
    clock_offset_us: Optional[int] = None
    last_error: Optional[str] = None
    limits: Optional[list[VenueLimit]] = None


@dataclass(frozen=True)
class Latency:
    """Durations of one stage in one thread, in nanoseconds."""

    thread: str
    stage: str
    count: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


@dataclass(frozen=True)
class Identity:
    name: str
    role: Role


@dataclass(frozen=True)
class Durability:
    level: str
    journal: str


@dataclass(frozen=True)
class ShardHealth:
    shard: int
    complete: bool
    seq: int


@dataclass(frozen=True)
class AdapterHealth:
    """The state of an adapter to a venue."""

    id: int
    name: str
    connected: bool


@dataclass(frozen=True)
class Listener:
    name: str
    address: str


@dataclass(frozen=True)
class RemoteStrategy:
    """A strategy in its own process."""

    name: str
    present: bool
    host: str


@dataclass(frozen=True)
class Broker:
    """The link to strategies in their own processes: `direct`, or through `nats`, a broker."""

    connected: bool
    strategies: Tuple[RemoteStrategy, ...] = ()
    reason: Optional[str] = None
    missing_rights: Tuple[str, ...] = ()
    wide_logins: Tuple[str, ...] = ()
    transport: Optional[str] = None


@dataclass(frozen=True)
class Member:
    """Another server of the cluster, as seen by the server that answers."""

    name: str
    shards: Tuple[int, ...]
    state: str
    in_doubt: int
    doubts: Tuple[str, ...]
    routed: int
    refused: int
    events: int
    gaps: int
    snapshots: int
    age_ms: Optional[int] = None


@dataclass(frozen=True)
class Standby:
    """The state of this server in a pair of leader and standby."""

    stand: str
    epoch: int
    complete: bool
    behind: int
    foreign: int = 0


@dataclass(frozen=True)
class Health:
    """The state of the service.

    `ready`: it accepts orders. Without a login, only `ready` is present.
    """

    ready: bool
    phase: Optional[str] = None
    durability: Optional[Durability] = None
    kill_switch: Optional[bool] = None
    kill_switch_state: Optional[SwitchState] = None
    kill_switch_unconfirmed: Tuple[int, ...] = ()
    shards: Tuple[ShardHealth, ...] = ()
    adapters: Tuple[AdapterHealth, ...] = ()
    listeners: Tuple[Listener, ...] = ()
    broker: Optional[Broker] = None
    members: Optional[Tuple[Member, ...]] = None
    standby: Optional[Standby] = None
    uptime_ms: Optional[int] = None


@dataclass(frozen=True)
class Version:
    name: str
    version: str
    formats: Mapping[str, int]
    commit: Optional[str] = None


@dataclass(frozen=True)
class HistoryBar:
    """The trades of a security in an interval, which begins at `date_time`."""

    security_id: int
    date_time: datetime
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    trades: int
    complete: bool


@dataclass(frozen=True)
class HistoryTick:
    """A change of the market of a security.

    `last` and `last_size` are those of the trades since the tick before, and None without one. A
    side without a quote is None.
    """

    security_id: int
    date_time: datetime
    bid: Optional[Decimal] = None
    bid_size: Optional[Decimal] = None
    ask: Optional[Decimal] = None
    ask_size: Optional[Decimal] = None
    last: Optional[Decimal] = None
    last_size: Optional[Decimal] = None


@dataclass(frozen=True)
class Quote:
    """The newest prices of a security.

    `open`, `high`, `low` and `volume` are those of the trading day. `previous_close` is the last
    price of the trading day before, which began at `previous_day`. Unknown values are None.
    """

    security_id: int
    volume: Decimal
    date_time: Optional[datetime] = None
    bid: Optional[Decimal] = None
    bid_size: Optional[Decimal] = None
    ask: Optional[Decimal] = None
    ask_size: Optional[Decimal] = None
    last: Optional[Decimal] = None
    last_size: Optional[Decimal] = None
    open: Optional[Decimal] = None
    high: Optional[Decimal] = None
    low: Optional[Decimal] = None
    previous_close: Optional[Decimal] = None
    previous_day: Optional[datetime] = None

    @property
    def change(self) -> Optional[Decimal]:
        """The last price relative to the previous close, such as 0.01 for one percent."""
        if self.last is None or not self.previous_close:
            return None
        return self.last / self.previous_close - 1
