"""The state of a live strategy, and what its context may do: the `Core` of `Context`.

A request is queued and leaves when the callback is over.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Union

from ..enums import Mode, OrderStatus, OrderType, Phase, Side, TimeInForce
from ..strategy_context import ChangesRow, InstrumentRow, OrderRow, SecurityKey, SubmitRow
from ..strategy_numbers import SCALE
from ..strategy_values import ContextClosed, RequestRefused, StrategyTick
from .bars import BarMaker
from .market_events import ORDER_TYPES, SIDES, TIFS, PositionState
from .messages import Changes, Submit, Terms
from .order_table import OrderTable, TrackedOrder
from .reasons import text_of
from .reference import Reference

# The same bounds as in the service.
REQUESTS_MAX = 512
TIMERS_MAX = 64
BARS_MAX = 64
GENERIC_NAME_BYTES_MAX = 128
GENERIC_BODY_BYTES_MAX = 65_536

_FLAT = PositionState(0, 0, 0)


class SubmitRequest(NamedTuple):
    submit: Submit


class ModifyRequest(NamedTuple):
    root: str
    changes: Changes


class CancelRequest(NamedTuple):
    root: str


class SubscribeRequest(NamedTuple):
    security_id: int
    on: bool


class GenericRequest(NamedTuple):
    name: str
    body: bytes


StrategyRequest = Union[SubmitRequest, ModifyRequest, CancelRequest, SubscribeRequest, GenericRequest]


class LiveCore:
    def __init__(self, name: str, strategy_id: int, numbers: tuple[int, int], reference: Reference) -> None:
        self._name, self._strategy_id, self.reference = name, strategy_id, reference
        # Numbers for ids of orders and for ids of cancels, which differ in their first letters.
        self._next_order, self._next_cancel = numbers[0], numbers[0]
        self._numbers_end = numbers[1]
        self.now = 0
        self.current_phase = Phase.EXIT
        self.is_in_callback = False
        self.order_table = OrderTable()
        self.positions: dict[int, PositionState] = {}
        # Each shard's part.
        self.cash_parts: dict[tuple[str, int], int] = {}
        self.followed: set[int] = set()
        self.bars: list[BarMaker] = []
        self.timers: dict[int, int] = {}
        self.ticks: dict[int, StrategyTick] = {}
        self.requests: deque[StrategyRequest] = deque()

    def now_ns(self) -> int:
        self._check()
        return self.now

    def phase(self) -> str:
        return self.current_phase.value

    def mode(self) -> str:
        return Mode.REAL_TIME.value

    def name(self) -> str:
        return self._name

    def base_currency(self) -> str:
        """Returns the only currency of the strategy's cash."""
        currencies = {currency for currency, _ in self.cash_parts}
        if len(currencies) != 1:
            found = ", ".join(sorted(currencies)) or "none"
            raise ValueError(f"name the currency, as in cash('USD'): there is cash in {found}")
        return currencies.pop()

    def security(self, key: SecurityKey) -> InstrumentRow:
        return self.reference.find(key)

    def subscribe(self, security_id: int, on: bool) -> None:
        self._check()
        is_followed = security_id in self.followed
        if not on:
            self.bars = [maker for maker in self.bars if maker.security_id != security_id]
        if is_followed == on:
            return
        self._push(SubscribeRequest(security_id, on))
        if on:
            self.followed.add(security_id)
        else:
            self.followed.discard(security_id)

    def subscribe_bars(self, security_id: int, interval_ns: int) -> None:
        self._check()
        if len(self.bars) >= BARS_MAX:
            raise _refused("overflow")
        self.subscribe(security_id, True)
        if all((maker.security_id, maker.interval_ns) != (security_id, interval_ns) for maker in self.bars):
            self.bars.append(BarMaker(security_id, interval_ns))

    def submit(self, order: SubmitRow) -> str:
        self._check()
        security_id, side, kind, quantity, limit, stop, tif, tif_date, account_id, exchange_order = order
        if self.current_phase is not Phase.RUNNING:
            raise _refused("strategy-not-running")
        if not self.order_table.has_room:
            raise _refused("max-open-orders")
        if self._next_order >= self._numbers_end:
            raise _refused("lane-full")
        terms = Terms(
            quantity,
            limit or 0,
            stop or 0,
            tif_date,
            security_id,
            self._strategy_id,
            account_id or self.reference.default_account(security_id),
            SIDES.index(Side(side)),
            ORDER_TYPES.index(OrderType(kind)),
            TIFS.index(TimeInForce(tif)),
            limit is not None,
            stop is not None,
            exchange_order,
        )
        int_id = f"s{self._next_order}"
        self._push(SubmitRequest(Submit(int_id, terms)))
        self._next_order += 1
        self.order_table.add(TrackedOrder(int_id, int_id, security_id, Side(side), quantity, limit, stop))
        return int_id

    def modify(self, int_id: str, changes: ChangesRow) -> None:
        self._check()
        if self.order_table.find_open(int_id) is None:
            raise _refused("unknown-order")
        if self.current_phase is not Phase.RUNNING:
            raise _refused("strategy-not-running")
        quantity, limit, stop, tif, tif_date = changes
        tif_number = None if tif is None else TIFS.index(TimeInForce(tif))
        self._push(ModifyRequest(int_id, Changes(quantity, limit, stop, tif_number, tif_date)))

    def cancel(self, int_id: str) -> None:
        self._check()
        if self.order_table.find_open(int_id) is None:
            raise _refused("unknown-order")
        self._push(CancelRequest(int_id))

    def cancel_all(self) -> None:
        """Cancels all orders that are open and not being cancelled, as far as there is room."""
        asked = {request.root for request in self.requests if isinstance(request, CancelRequest)}
        for order in self.order_table.open:
            is_pending = order.status is OrderStatus.PENDING_CANCEL or order.held_cancel is not None
            if not is_pending and order.root not in asked and len(self.requests) < REQUESTS_MAX:
                self.requests.append(CancelRequest(order.root))

    def position(self, security_id: int) -> tuple[int, int | None, int]:
        self._check()
        state = self.positions.get(security_id, _FLAT)
        return state.quantity, _average(state, self.reference.find(security_id)[5]), state.realized

    def orders(self) -> list[OrderRow]:
        self._check()
        return [
            (
                order.root,
                order.security_id,
                self.reference.symbol(order.security_id),
                order.side.value,
                order.status.value,
                order.quantity,
                order.filled,
                order.limit,
                order.stop,
            )
            for order in self.order_table.open
        ]

    def cash(self, currency: str) -> int | None:
        self._check()
        return sum(part for (of, _), part in self.cash_parts.items() if of == currency)

    def tick(self, security_id: int) -> StrategyTick | None:
        self._check()
        return self.ticks.get(security_id)

    def set_timer(self, timer: int, at_ns: int) -> None:
        self._check()
        if timer not in self.timers and len(self.timers) >= TIMERS_MAX:
            raise _refused("overflow")
        self.timers[timer] = at_ns

    def clear_timer(self, timer: int) -> None:
        self._check()
        self.timers.pop(timer, None)

    def send_generic(self, name: str, body: bytes) -> None:
        self._check()
        if not 1 <= len(name.encode()) <= GENERIC_NAME_BYTES_MAX or len(body) > GENERIC_BODY_BYTES_MAX:
            raise _refused("overflow")
        self._push(GenericRequest(name, body))

    def next_cancel_id(self) -> str | None:
        if self._next_cancel >= self._numbers_end:
            return None
        self._next_cancel += 1
        return f"q{self._next_cancel - 1}"

    def _push(self, request: StrategyRequest) -> None:
        if len(self.requests) >= REQUESTS_MAX:
            raise _refused("lane-full")
        self.requests.append(request)

    def _check(self) -> None:
        if not self.is_in_callback:
            raise ContextClosed("the context is valid during a callback only")


def _refused(reason: str) -> RequestRefused:
    return RequestRefused(reason, text_of(reason))


def _average(position: PositionState, contract_size: int) -> int | None:
    """Returns the average price, rounded half away from zero as in the service."""
    units = position.quantity * contract_size
    if units == 0:
        return None
    exact = position.cost * SCALE * SCALE
    quotient, rest = divmod(abs(exact), abs(units))
    rounded = quotient + (2 * rest >= abs(units))
    return rounded if (exact < 0) == (units < 0) else -rounded
