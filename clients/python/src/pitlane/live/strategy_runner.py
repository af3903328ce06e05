"""Calls a strategy for the events of the server, and turns its requests into commands.

**Phases.** A phase on which all shards agree is the strategy's, and the runner moves it there
through every phase between. A strategy that fails is stopped at once, and the shards are informed.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, NamedTuple, Union

from ..enums import ExecType, Phase
from ..strategy import Strategy
from ..strategy_callbacks import Callbacks, failure_text
from ..strategy_numbers import reader_of
from ..strategy_values import StrategyTick
from .core import CancelRequest, GenericRequest, LiveCore, ModifyRequest, SubmitRequest, SubscribeRequest
from .lifecycle import path
from .market_events import (
    PHASES,
    Booked,
    CashAdjusted,
    Forgotten,
    OrderEntered,
    PhaseReported,
    PositionAdjusted,
    RawTick,
    RequestRefusal,
    ShardEvent,
    StatusReport,
)
from .messages import Cancel, Command, Modify, SetPhase, Subscribe
from .order_table import TrackedOrder
from .reasons import text_of

_OVER = (Phase.STOP, Phase.EXIT)


class FailureNotice(NamedTuple):
    """The strategy has failed and is stopped."""

    reason: str


Output = Union[Command, GenericRequest, FailureNotice]


class StrategyRunner:
    def __init__(
        self, make: Callable[[], Strategy], core: LiveCore, strategy_id: int, shards: int, cancel_on_failure: bool
    ) -> None:
        self._make, self._core, self._strategy_id = make, core, strategy_id
        self._cancel_on_failure = cancel_on_failure
        self._callbacks: Callbacks | None = None
        self._read: Callable[[int], float] = reader_of("float")
        # The phase that each shard last reported.
        self._phases: list[Phase | None] = [None] * shards
        # Whether the strategy has failed, or ends, and not all shards know it yet.
        self._is_stopping = False
        self._has_begun = False
        self._out: deque[Output] = deque()

    @property
    def core(self) -> LiveCore:
        return self._core

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait to be sent."""
        return bool(self._out or self._core.requests) or self._core.order_table.has_held

    def deadline(self) -> int | None:
        return min(self._core.timers.values(), default=None)

    def begin(self, start: bool) -> None:
        """Starts the strategy, once the state is complete."""
        self._has_begun = True
        self._request_path(Phase.EXIT, Phase.RUNNING if start else Phase.INIT)

    def stop_all(self, now: int) -> None:
        """Stops the strategy at once before the end, and informs the shards."""
        before = self._core.current_phase
        self._transition(now, Phase.EXIT)
        self._is_stopping = True
        self._request_path(before, Phase.EXIT)

    def handle_event(self, now: int, shard: int, event: ShardEvent) -> None:
        core, body = self._core, event.body
        if isinstance(body, OrderEntered):
            order = core.order_table.handle_terms(body)
            if order is not None:
                self._release(now, order)
                if body.exec_type in (ExecType.PENDING_NEW, ExecType.REJECTED):
                    amounts = (body.quantity, 0, 0, 0, 0)
                    self._report(now, event.at, order.root, body, amounts)
        elif isinstance(body, StatusReport):
            order = core.order_table.handle_status(body)
            root = body.int_id if order is None else order.root
            if order is not None:
                self._release(now, order)
            amounts = (body.quantity, body.filled, body.avg_price, body.last_quantity, body.last_price)
            self._report(now, event.at, root, body, amounts)
        elif isinstance(body, RequestRefusal):
            order = core.order_table.handle_refusal(body)
            root = body.int_id if order is None else order.root
            self._refuse(now, root, "cancel" if body.is_cancel else "modify", body.reason)
        elif isinstance(body, Forgotten):
            core.order_table.handle_forgotten(body)
        elif isinstance(body, Booked):
            self._handle_booking(now, shard, event.at, body)
        elif isinstance(body, PositionAdjusted):
            core.positions[body.security_id] = body.position
        elif isinstance(body, CashAdjusted):
            core.cash_parts[body.currency, shard] = body.cash
        elif isinstance(body, PhaseReported):
            self._handle_phase(now, shard, body.phase)

    def handle_tick(self, now: int, tick: RawTick) -> None:
        core = self._core
        if tick.security_id not in core.followed:
            return
        symbol = core.reference.symbol(tick.security_id)
        core.ticks[tick.security_id] = shown = self._shown_tick(tick, symbol)
        if core.current_phase not in (Phase.PREFEED, Phase.RUNNING):
            return
        for maker in list(core.bars):
            bar = maker.handle(tick) if maker.security_id == tick.security_id else None
            if bar is not None:
                row = (tick.security_id, symbol, bar.start, maker.interval_ns, *bar[1:])
                if not self._call(now, Callbacks.bar, row):
                    return
        on_tick = None if self._callbacks is None else self._callbacks.on_tick
        if on_tick is not None:
            self._call(now, lambda callbacks: on_tick(shown, callbacks.context))

    def handle_generic(self, now: int, name: str, body: bytes) -> None:
        if self._core.current_phase is Phase.RUNNING:
            self._call(now, Callbacks.generic, name, body)

    def fire_timers(self, now: int) -> None:
        """Calls every due timer, the earliest first, each once however often it sets itself."""
        due = sorted((at, timer) for timer, at in self._core.timers.items() if at <= now)
        for at, timer in due:
            if self._core.timers.get(timer) == at:
                del self._core.timers[timer]
                self._call(now, Callbacks.timer, timer)

    def take_output(self, now: int) -> list[Output]:
        """Returns the commands for the requests of the strategy."""
        for _ in range(len(self._core.requests)):
            request = self._core.requests.popleft()
            if isinstance(request, SubmitRequest):
                self._out.append(request.submit)
            elif isinstance(request, ModifyRequest):
                self._modify(now, request)
            elif isinstance(request, CancelRequest):
                self._cancel(now, request)
            elif isinstance(request, SubscribeRequest):
                self._out.append(Subscribe(self._strategy_id, request.security_id, request.on))
            else:
                self._out.append(request)
        out = list(self._out)
        self._out.clear()
        return out

    def _modify(self, now: int, request: ModifyRequest) -> None:
        order = self._core.order_table.find_open(request.root)
        if order is None:
            return self._refuse(now, request.root, "modify", "order-finished")
        if order.is_in_flight:
            return self._refuse(now, request.root, "modify", "not-acknowledged")
        int_id = self._core.order_table.next_version(order)
        if int_id is None:
            return self._refuse(now, request.root, "modify", "lane-full")
        self._out.append(Modify(order.handle, int_id, request.changes))

    def _cancel(self, now: int, request: CancelRequest) -> None:
        order = self._core.order_table.find_open(request.root)
        if order is None:
            return self._refuse(now, request.root, "cancel", "order-finished")
        if order.held_cancel is not None:
            return self._refuse(now, request.root, "cancel", "request-pending")
        int_id = self._core.next_cancel_id()
        if int_id is None:
            return self._refuse(now, request.root, "cancel", "lane-full")
        if order.is_in_flight:
            order.held_cancel = int_id
        else:
            self._out.append(Cancel(order.handle, int_id))

    def _release(self, now: int, order: TrackedOrder) -> None:
        """Sends a cancel that waited for the handle of its order, or refuses it."""
        held, order.held_cancel = order.held_cancel, None
        if held is None:
            return
        if order.status.is_finished:
            self._refuse(now, order.root, "cancel", "order-finished")
        else:
            self._out.append(Cancel(order.handle, held))

    def _report(
        self, now: int, at: int, root: str, body: OrderEntered | StatusReport, amounts: tuple[int, int, int, int, int]
    ) -> None:
        if self._callbacks is None or not self._callbacks.wants_statuses:
            return
        symbol = self._core.reference.symbol(body.security_id)
        side, type, tif = body.side.value, body.type.value, body.tif.value
        names = (root, at, body.security_id, symbol, side, type, tif, body.exec_type.value, body.status.value)
        reason = body.reason or None
        numbers = (*amounts, reason, None if reason is None else text_of(reason))
        self._call(now, Callbacks.order_status, names, numbers)

    def _refuse(self, now: int, root: str, request: str, reason: str) -> None:
        self._call(now, Callbacks.refused, root, request, reason, text_of(reason))

    def _handle_booking(self, now: int, shard: int, at: int, booked: Booked) -> None:
        if booked.security_id is not None:
            self._core.positions[booked.security_id] = booked.position
        self._core.cash_parts[booked.currency, shard] = booked.cash
        if self._callbacks is None or not self._callbacks.wants_transactions:
            return
        security_id = booked.security_id
        row = (
            booked.id,
            at,
            booked.type.value,
            security_id,
            None if security_id is None else self._core.reference.symbol(security_id),
            booked.quantity,
            booked.price,
            booked.commission,
            booked.currency,
            booked.int_id or None,
            booked.position.quantity,
            booked.position.realized,
        )
        self._call(now, Callbacks.transaction, row)

    def _handle_phase(self, now: int, shard: int, phase: Phase) -> None:
        if not self._has_begun or shard >= len(self._phases):
            return
        self._phases[shard] = phase
        if any(reported is not phase for reported in self._phases):
            return
        # Phases from before a failure are ignored.
        if self._is_stopping and phase not in _OVER:
            return
        self._is_stopping = False
        self._transition(now, phase)

    def _transition(self, now: int, phase: Phase) -> None:
        for step in path(self._core.current_phase, phase) or ():
            self._core.current_phase = step
            if step is Phase.INIT:
                self._core.timers.clear()
                self._core.bars.clear()
                self._create()
            succeeded = self._call(now, Callbacks.phase, step.value)
            if step is Phase.EXIT:
                self._callbacks = None
                self._core.timers.clear()
            if not succeeded:
                return

    def _create(self) -> None:
        """Creates the strategy in its initial state."""
        try:
            strategy = self._make()
            self._callbacks = Callbacks(strategy, self._core)
            self._read = reader_of(strategy.decimals)
        except Exception as error:
            self._fail(failure_text(error))

    def _request_path(self, before: Phase, after: Phase) -> None:
        for step in path(before, after) or ():
            self._out.append(SetPhase(self._strategy_id, PHASES.index(step)))

    def _call(self, now: int, call: Callable[..., None], *arguments: Any) -> bool:
        """Calls the strategy. Returns false if it has failed, now or before."""
        callbacks, core = self._callbacks, self._core
        if callbacks is None:
            return core.current_phase is Phase.EXIT
        core.now, core.is_in_callback = now, True
        try:
            call(callbacks, *arguments)
        except Exception as error:
            self._fail(failure_text(error))
            return False
        finally:
            core.is_in_callback = False
        return True

    def _fail(self, reason: str) -> None:
        """Stops the strategy: it is not called any more, and its unsent orders are dropped."""
        core = self._core
        if core.current_phase not in _OVER:
            core.current_phase = Phase.STOP
        self._callbacks = None
        self._is_stopping = True
        core.timers.clear()
        kept = [request for request in core.requests if isinstance(request, (SubscribeRequest, GenericRequest))]
        for request in core.requests:
            if isinstance(request, SubmitRequest):
                core.order_table.withdraw(request.submit.int_id)
        core.requests.clear()
        core.requests.extend(kept)
        if self._cancel_on_failure:
            core.cancel_all()
        self._out.append(SetPhase(self._strategy_id, PHASES.index(Phase.STOP)))
        self._out.append(FailureNotice(reason))

    def _shown_tick(self, tick: RawTick, symbol: str) -> StrategyTick:
        read = self._read
        has_bid, has_ask = tick.bid_size > 0, tick.ask_size > 0
        return StrategyTick(
            tick.security_id,
            symbol,
            tick.at,
            read(tick.bid) if has_bid else None,
            read(tick.bid_size) if has_bid else None,
            read(tick.ask) if has_ask else None,
            read(tick.ask_size) if has_ask else None,
            read(tick.last) if tick.traded else None,
            read(tick.last_size) if tick.traded else None,
            read(tick.volume),
        )
