"""Unanswered requests to the server: each is sent again until there is an answer.

Orders and requests about them are sent concurrently, each under its id. The others (phases,
subscriptions, followed securities) are sent one after the other, because their order matters.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .messages import Accepted, Busy, CommandRequest, Declined, Follows, OrderCommand, Reply, Request

# Time after which a busy server is asked again.
BUSY_NS = 5_000_000
NUMBERS_MAX = 16_384
"""Sent messages whose answers are awaited: several for each request. The oldest are forgotten; the
request is sent again, and the answer to that counts."""


@dataclass
class _PendingOrder:
    request: CommandRequest
    command: OrderCommand
    due: int
    """Time at which it is to be sent, again or for the first time."""


class PendingRequests:
    def __init__(self) -> None:
        self._orders: dict[str, _PendingOrder] = {}
        # The first of the others is under way: the number of its message and when it is due again.
        self._others: deque[Request] = deque()
        self._other_sent: tuple[int, int] | None = None
        # The request that the answer to each message belongs to.
        self._ids: dict[int, str] = {}

    @property
    def is_empty(self) -> bool:
        return not self._orders and not self._others

    def order(self, incarnation: int, command: OrderCommand, due: int = 0) -> None:
        """Adds an order, or a request about one. The open orders of a strategy are its bound."""
        self._orders[command.int_id] = _PendingOrder(CommandRequest(incarnation, command), command, due)

    def ask(self, request: Request) -> None:
        """Adds any other request."""
        self._others.append(request)

    def mark_answered(self, int_id: str) -> None:
        """Removes a request that an event has answered."""
        self._orders.pop(int_id, None)

    def send_again(self) -> None:
        """Makes all unanswered requests due."""
        for pending in self._orders.values():
            pending.due = 0
        self._ids.clear()
        self._other_sent = None

    def deadline(self) -> int | None:
        times = [pending.due for pending in self._orders.values()]
        if self._others:
            times.append(0 if self._other_sent is None else self._other_sent[1])
        return min(times, default=None)

    def poll(self, now: int, again: int, number: int) -> list[tuple[int, Request]]:
        """Returns the requests that are due, numbered after `number`; they are due again later."""
        out: list[tuple[int, Request]] = []
        for int_id, pending in self._orders.items():
            if pending.due <= now:
                number += 1
                pending.due = again
                self._ids[number] = int_id
                out.append((number, pending.request))
        while len(self._ids) > NUMBERS_MAX:
            del self._ids[next(iter(self._ids))]
        if self._others and (self._other_sent is None or self._other_sent[1] <= now):
            number += 1
            self._other_sent = (number, again)
            out.append((number, self._others[0]))
        return out

    def handle_answer(self, now: int, number: int, reply: Reply) -> tuple[OrderCommand, str] | None:
        """Handles the answer to a message.

        Returns the request about an order that was declined, with the reason.
        """
        if not isinstance(reply, (Accepted, Busy, Declined, Follows)):
            return None
        if self._other_sent is not None and self._other_sent[0] == number:
            if isinstance(reply, Busy):
                self._other_sent = (number, now + BUSY_NS)
            else:
                self._other_sent = None
                self._others.popleft()
            return None
        int_id = self._ids.pop(number, None)
        pending = None if int_id is None else self._orders.get(int_id)
        if int_id is None or pending is None:
            return None
        if isinstance(reply, Busy):
            pending.due = now + BUSY_NS
            return None
        del self._orders[int_id]
        return (pending.command, reply.reason) if isinstance(reply, Declined) else None
