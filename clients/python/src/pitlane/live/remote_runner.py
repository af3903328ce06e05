"""The runner of one strategy, whose shards are at a remote server. Time is an argument.

```text
EVENTS, PRICES, REPLY ─► handle_* ─► StrategyRunner ─► Strategy
                                          │ commands
REQUEST, PUBLISH ◄─ poll ◄─ PendingRequests ◄─┘
```

**The link to the server** is up, lost, or being restored:

```text
     connection lost, no answer,
     unknown to the server
up ─────────────────────────► lost ── Resume ──► asking ── Welcome ──► catching ── Missed ──► up
                               ▲                  │ timeout              │ timeout
                               └──────────────────┴──────────────────────┘
```

While the link is not up nothing new is sent: orders are refused with a reason, cancels wait.
Unanswered requests are sent again under their ids when the link is up, and the server accepts each
once.
"""

from __future__ import annotations

import logging
from collections import deque
from enum import Enum, auto
from typing import Callable

from ..enums import ExecType, OrderStatus
from ..pace import OrderPace
from ..strategy import Strategy, name_of
from . import frames
from .codec import NO_HANDLE
from .core import GenericRequest, LiveCore
from .market_events import (
    ORDER_TYPES,
    SIDES,
    TIFS,
    NumberedEvent,
    OrderEntered,
    RawTick,
    RequestRefusal,
    ShardEvent,
)
from .messages import (
    Bye,
    Cancel,
    CommandRequest,
    EventBatch,
    Failed,
    Fetch,
    Follow,
    Follows,
    Gone,
    Head,
    Heartbeat,
    Missed,
    Modify,
    OrderCommand,
    PriceBatch,
    Refused,
    Reply,
    Request,
    Resume,
    SetPhase,
    Submit,
    Subscribe,
    UnknownSession,
    Welcome,
)
from .pending_requests import PendingRequests
from .record import EventRecord
from .reference import Reference
from .strategy_runner import FailureNotice, Output, StrategyRunner

_MS = 1_000_000
# Timeout of an answer.
ANSWER_NS = 500 * _MS
# Pause between two attempts to reach the server again.
RESUME_NS = 100 * _MS
# Heartbeats that a process sends per lease.
BEATS_PER_LEASE = 3
# Minimum interval between two entries of received numbers in the record.
NOTE_NS = 1_000 * _MS
GENERICS_MAX = 256
"""Events for other strategies that wait for their confirmation; further ones are dropped."""

_log = logging.getLogger("pitlane.live")


class LinkState(Enum):
    UP = auto()
    LOST = auto()
    ASKING = auto()
    CATCHING = auto()


class RestartNeeded(Exception):
    """Missed events are no longer available: the strategy restarts from the state."""


class ServerRefused(Exception):
    """The server refuses the strategy; the text is its reason."""


class RemoteRunner:
    def __init__(
        self,
        now: int,
        incarnation: int,
        welcome: Welcome,
        reference: Reference,
        strategy: Strategy,
        make: Callable[[], Strategy],
        record: EventRecord | None = None,
        orders_per_s: int | None = None,
    ) -> None:
        self._incarnation, self._epoch = incarnation, welcome.epoch
        self._lease_ns = welcome.lease_ms * _MS
        core = LiveCore(name_of(strategy), welcome.strategy_id, welcome.numbers, reference)
        cancel_on_failure = strategy.cancel_on_failure or welcome.cancel_on_failure
        self.runner = StrategyRunner(make, core, welcome.strategy_id, welcome.shards, cancel_on_failure)
        self.received = [head.seen for head in welcome.heads]
        """Last event received by shard; nothing before it is missing."""
        self._requests = PendingRequests()
        self._follows: set[int] = set()
        self._tick_times: dict[int, int] = {}
        self._state = LinkState.UP
        # When a lost link is tried again, or until when an answer is awaited, and its number.
        self._until, self._asked = 0, 0
        self._is_connected = True
        # A request for missed events that is under way while the link is up.
        self._fetching: tuple[int, int] | None = None
        self._out: deque[bytes] = deque()
        self._number = 0
        self._prices, self._is_paced = 0, False
        self._last_beat: tuple[int, list[int], bool] = (0, [], False)
        self._last_message_at = self._beat_at = now
        self._noted: tuple[int, list[int]] = (now, [])
        self._record = record
        self._pace = None if orders_per_s is None else OrderPace(orders_per_s)
        # Events for other strategies: the first is sent and not confirmed yet.
        self._generics: deque[GenericRequest] = deque()
        self._generic_number = 1
        self._generic_due: int | None = None
        if record is not None:
            record.incarnation(incarnation)

    def begin(self, now: int, missed: list[NumberedEvent], state: list[NumberedEvent], start: bool) -> None:
        """Applies the events before the state and the state itself, then starts the strategy."""
        for numbered in missed:
            self._keep_record(numbered)
            self.runner.handle_event(now, numbered.shard, numbered.event)
        for numbered in state:
            self.runner.handle_event(now, numbered.shard, numbered.event)
        self.runner.begin(start)

    @property
    def is_up(self) -> bool:
        return self._state is LinkState.UP and self._is_connected

    @property
    def has_left(self) -> bool:
        """Whether all requests are answered."""
        return not self.runner.is_waiting and self._requests.is_empty

    def deadline(self) -> int:
        """Returns when it must be polled even if nothing arrives."""
        times = [self._beat_at if self._state is LinkState.UP else self._until]
        for time in (self._requests.deadline() if self.is_up else None, self.runner.deadline(), self._generic_due):
            if time is not None:
                times.append(time)
        if self._fetching is not None:
            times.append(self._fetching[1])
        return min(times)

    def set_first_number(self, number: int) -> None:
        """Continues the numbers of the requests of the handshake."""
        self._number = number

    def wind_down(self, now: int) -> None:
        """Makes the strategy stop and exit."""
        self.runner.stop_all(now)

    def set_connected(self, now: int, is_connected: bool) -> None:
        self._is_connected = is_connected
        if not is_connected:
            self._lose(now, "the server is away")
        elif self._state is LinkState.LOST:
            self._until = now
        self._generic_due = 0 if self._generics else None

    def handle_events(self, now: int, batch: EventBatch) -> None:
        if (batch.incarnation, batch.epoch) != (self._incarnation, self._epoch):
            return
        self._last_message_at = now
        lacks = False
        for numbered in batch.events:
            lacks = not self._receive_event(now, numbered) or lacks
        if lacks or any(head.last > seen for head, seen in zip(batch.heads, self.received)):
            return self._fetch(now)
        self._advance(now, batch.heads)

    def handle_prices(self, now: int, batch: PriceBatch) -> None:
        if batch.epoch != self._epoch or not self.is_up:
            return
        self._prices, self._is_paced = batch.number, batch.paced
        for tick in batch.ticks:
            # Two ticks of the same time are both delivered, such as a trade and the quote after it.
            if self._tick_times.get(tick.security_id, 0) <= tick.at:
                self._deliver_tick(now, tick)

    def handle_generic(self, now: int, frame: frames.GenericFrame) -> None:
        self.runner.handle_generic(now, frame.name, frame.body)
        self._out.append(frames.acknowledge(frame.number))

    def handle_published(self, number: int) -> None:
        if self._generics and number == self._generic_number:
            self._generics.popleft()
            self._generic_number += 1
            self._generic_due = 0 if self._generics else None

    def handle_reply(self, now: int, number: int, reply: Reply) -> None:
        self._last_message_at = now
        is_fetch = self._fetching is not None and self._fetching[0] == number
        is_asked = self._state in (LinkState.ASKING, LinkState.CATCHING) and self._asked == number
        if isinstance(reply, Refused):
            raise ServerRefused(reply.text)
        if isinstance(reply, Gone):
            if is_asked or is_fetch:
                raise RestartNeeded
        elif isinstance(reply, Welcome):
            if is_asked and self._state is LinkState.ASKING:
                self._epoch = reply.epoch
                self._ask(now, LinkState.CATCHING, Fetch(self._incarnation, self.received))
        elif isinstance(reply, Missed):
            if is_asked and self._state is LinkState.CATCHING:
                self._catch_up(now, reply)
            elif is_fetch:
                self._fetching = None
                for numbered in reply.events:
                    self._receive_event(now, numbered)
                if reply.more:
                    self._fetch(now)
        elif isinstance(reply, UnknownSession):
            if self._state is LinkState.UP:
                self._lose(now, "the server has restarted, or no longer knows this process")
                self._until = now
        else:
            self._handle_answer(now, number, reply)

    def poll(self, now: int) -> list[bytes]:
        """Runs the strategy, and returns the frames to send."""
        self.runner.fire_timers(now)
        # Each round handles the refusals of the previous one.
        for _ in range(64):
            outputs = self.runner.take_output(now)
            for output in outputs:
                self._handle_output(now, output)
            if not outputs:
                break
        self._check_link(now)
        if self.is_up:
            for number, request in self._requests.poll(now, now + ANSWER_NS, self._number):
                self._number = number
                self._out.append(frames.request(number, request.encode()))
            self._beat(now)
        if self._is_connected:
            self._publish(now)
        out = list(self._out) if self._is_connected else []
        self._out.clear()
        return out

    def leave(self) -> bytes:
        """Returns the frame that ends the session in good order."""
        self._number += 1
        return frames.request(self._number, Bye(self._incarnation).encode())

    def _receive_event(self, now: int, numbered: NumberedEvent) -> bool:
        """Delivers an event once; returns false if an event before it is missing."""
        shard, event = numbered.shard, numbered.event
        if shard >= len(self.received) or event.seq <= self.received[shard]:
            return True
        if numbered.before > self.received[shard]:
            return False
        self.received[shard] = event.seq
        self._keep_record(numbered)
        body = event.body
        if isinstance(body, OrderEntered) and body.exec_type in (ExecType.PENDING_NEW, ExecType.REJECTED):
            self._requests.mark_answered(body.int_id)
        elif isinstance(body, RequestRefusal):
            self._requests.mark_answered(body.request_id)
        self.runner.handle_event(now, shard, event)
        return True

    def _advance(self, now: int, heads: list[Head]) -> None:
        for shard, head in enumerate(heads[: len(self.received)]):
            self.received[shard] = max(self.received[shard], head.seen)
        if self._record is not None and now >= self._noted[0] and self._noted[1] != self.received:
            self._noted = (now + NOTE_NS, list(self.received))
            self._record.numbers(self.received)

    def _catch_up(self, now: int, missed: Missed) -> None:
        for numbered in missed.events:
            self._receive_event(now, numbered)
        if missed.more:
            return self._ask(now, LinkState.CATCHING, Fetch(self._incarnation, self.received))
        _log.info("the connection to the server is up again")
        self._state = LinkState.UP
        self._beat_at = now
        for security_id in sorted(self._follows):
            self._requests.ask(Follow(self._incarnation, security_id, True))
        self._requests.send_again()

    def _handle_answer(self, now: int, number: int, reply: Reply) -> None:
        if isinstance(reply, Follows) and reply.tick is not None:
            # The current tick is used unless newer prices have arrived.
            if reply.tick.security_id not in self._tick_times:
                self._deliver_tick(now, reply.tick)
        declined = self._requests.handle_answer(now, number, reply)
        if declined is not None:
            self._decline(now, *declined)

    def _deliver_tick(self, now: int, tick: RawTick) -> None:
        if tick.security_id in self._follows:
            self._tick_times[tick.security_id] = tick.at
            self.runner.handle_tick(now, tick)

    def _handle_output(self, now: int, output: Output) -> None:
        if isinstance(output, (Submit, Modify)) and not self.is_up:
            self._decline(now, output, "broker-lost")
        elif isinstance(output, Submit):
            if self._record is not None:
                self._record.asked(output.int_id)
            delay_s = 0.0 if self._pace is None else self._pace.delay_s(None, now / 1e9)
            self._requests.order(self._incarnation, output, now + round(delay_s * 1e9))
        elif isinstance(output, (Modify, Cancel)):
            self._requests.order(self._incarnation, output)
        elif isinstance(output, SetPhase):
            self._requests.ask(CommandRequest(self._incarnation, output))
        elif isinstance(output, Subscribe):
            self._subscribe(output)
        elif isinstance(output, FailureNotice):
            _log.error("the strategy has failed and was stopped: %s", output.reason)
            self._requests.ask(Failed(self._incarnation, output.reason))
        elif len(self._generics) < GENERICS_MAX:
            self._generics.append(output)
            self._generic_due = self._generic_due or now
        else:
            _log.warning("an event for other strategies was dropped: %s", output.name)

    def _subscribe(self, command: Subscribe) -> None:
        security_id, on = command.security_id, command.on
        self._requests.ask(CommandRequest(self._incarnation, command))
        self._requests.ask(Follow(self._incarnation, security_id, on))
        if on:
            self._follows.add(security_id)
        else:
            self._follows.discard(security_id)
            self._tick_times.pop(security_id, None)

    def _decline(self, now: int, command: OrderCommand, reason: str) -> None:
        """Reports a failed request to the strategy, in place of a shard."""
        body: OrderEntered | RequestRefusal
        if isinstance(command, Submit):
            terms = command.terms
            body = OrderEntered(
                NO_HANDLE,
                command.int_id,
                "",
                ExecType.REJECTED,
                OrderStatus.REJECTED,
                reason,
                terms.quantity,
                terms.limit if terms.limit_given else None,
                terms.stop if terms.stop_given else None,
                terms.security_id,
                SIDES[terms.side],
                ORDER_TYPES[terms.kind],
                TIFS[terms.tif],
            )
        else:
            is_cancel = isinstance(command, Cancel)
            root = self.runner.core.order_table.root_of(command.handle) or ""
            # Without an id, the status of the order stays as it is.
            body = RequestRefusal(command.handle, "", command.int_id, is_cancel, OrderStatus.NEW, reason)
            if not root:
                return
        self.runner.handle_event(now, 0, ShardEvent(0, now, body))

    def _publish(self, now: int) -> None:
        if self._generics and self._generic_due is not None and self._generic_due <= now:
            event = self._generics[0]
            frame = frames.publish(self._incarnation, self._generic_number, event.name, event.body)
            self._out.append(frame)
            self._generic_due = now + ANSWER_NS

    def _ask(self, now: int, state: LinkState, request: Request) -> None:
        self._asked, self._until, self._state = self._send(request), now + ANSWER_NS, state

    def _send(self, request: Request) -> int:
        self._number += 1
        self._out.append(frames.request(self._number, request.encode()))
        return self._number

    def _fetch(self, now: int) -> None:
        if self._state is LinkState.UP and (self._fetching is None or self._fetching[1] <= now):
            number = self._send(Fetch(self._incarnation, self.received))
            self._fetching = (number, now + ANSWER_NS)

    def _beat(self, now: int) -> None:
        """Sends a heartbeat; at once, if the server waits for what the strategy has received."""
        news = (self._prices, list(self.received), self.has_left)
        is_due = now >= self._beat_at
        if not is_due and not (self._is_paced and news != self._last_beat):
            return
        self._last_beat = news
        beat = Heartbeat(self._incarnation, *news)
        if is_due:
            self._beat_at = now + self._lease_ns // BEATS_PER_LEASE
            self._send(beat)
        else:
            self._out.append(frames.request(0, beat.encode()))

    def _lose(self, now: int, why: str) -> None:
        if self._state is LinkState.LOST:
            return
        if self._state is LinkState.UP:
            _log.warning("the connection to the server is lost, orders are refused until it is back: %s", why)
        self._state, self._until = LinkState.LOST, now + RESUME_NS
        self._fetching = None

    def _check_link(self, now: int) -> None:
        """Detects a silent server, and tries to reach it again if the link is lost."""
        if self._state is LinkState.UP:
            if now - self._last_message_at > self._lease_ns:
                self._lose(now, "the server is silent")
            elif self._fetching is not None and self._fetching[1] <= now:
                self._fetch(now)
        elif self._until > now:
            return
        elif self._state is not LinkState.LOST:
            self._state, self._until = LinkState.LOST, now
        elif self._is_connected:
            self._ask(now, LinkState.ASKING, Resume(self._incarnation, self.received))
        else:
            self._until = now + RESUME_NS

    def _keep_record(self, numbered: NumberedEvent) -> None:
        if self._record is not None:
            self._record.event(numbered)
