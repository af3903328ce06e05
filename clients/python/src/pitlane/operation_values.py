"""Values for operators: limits, sessions, health. `values` has the rules of all values."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Mapping, Optional, Tuple

from .enums import Role, SwitchState


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

    `position` is the largest position that its open orders could lead to; of an account over all
    strategies. `credit` is the credit that an account with such a limit uses; without it
    `unanswered_shards` has the shards that did not answer for it.
    """

    open_orders: int
    refusals: Tuple[LimitRefusals, ...]
    strategy_name: Optional[str] = None
    account_name: Optional[str] = None
    position: Optional[Decimal] = None
    position_security_id: Optional[int] = None
    credit: Optional[Decimal] = None
    unanswered_shards: Tuple[int, ...] = ()


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
