"""Responses of the service as frozen values.

Amounts are `Decimal`, times are `datetime` with a time zone, and an absent value is None. The
annotations use `Optional` instead of `X | None`, because they are evaluated at run time and Python
3.9 does not support the other form.
"""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Optional, Tuple, Union

from .enums import (
    ExecType,
    Mode,
    OptionType,
    OrderStatus,
    OrderType,
    Phase,
    SecurityType,
    Side,
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
    # What the venue limits per order; None: no limit.
    min_notional: Optional[Decimal] = None
    apply_min_to_market: Optional[bool] = None
    max_notional: Optional[Decimal] = None
    apply_max_to_market: Optional[bool] = None
    order_types: Optional[Tuple[OrderType, ...]] = None


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
    exec_inst: Optional[str] = None
    min_qty: Optional[Decimal] = None
    max_floor: Optional[Decimal] = None
    sent_by: Optional[Sender] = None
    modified_by: Optional[Sender] = None
    canceled_by: Optional[Sender] = None

    @property
    def is_open(self) -> bool:
        return not self.status.is_finished


@dataclass(frozen=True)
class StatusChange:
    """A change of an order.

    `last_quantity` and `last_price` are those of this fill; `limit` and `stop` those at that time.
    """

    date_time: datetime
    exec_type: ExecType
    status: OrderStatus
    quantity: Decimal
    filled_quantity: Decimal
    reason: Optional[str] = None
    last_quantity: Optional[Decimal] = None
    last_price: Optional[Decimal] = None
    limit: Optional[Decimal] = None
    stop: Optional[Decimal] = None


@dataclass(frozen=True)
class OrderChanges:
    """What happened to an order in its trading day, oldest first.

    `date_time` is the time of its submission. If it is not `complete`, older changes are missing:
    from before the start of the service or of the trading day, or beyond what the service keeps.
    """

    int_id: str
    date_time: datetime
    complete: bool
    changes: Tuple[StatusChange, ...]


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
class ProfitDay:
    """Profit of a trading day that has ended, in the base currency."""

    trading_day: str
    base_currency: str
    total: ProfitSum


@dataclass(frozen=True)
class Profit:
    """Profit of a trading day before and after fees."""

    base_currency: str
    total: ProfitSum
    strategies: Tuple[ProfitSum, ...]
    rows: Tuple[ProfitRow, ...]
    trading_day: Optional[str] = None
