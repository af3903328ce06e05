"""The orders of one strategy: their ids, their handles and their state.

```text
submit ─► in flight ── entered ──► working ── filled, cancelled, … ──► finished ─► forgotten
                └───── rejected ─────────────────────────────────────────▲
```
An order keeps the id under which the strategy submitted it, its root. Each modification gives it
another id at the server, such as `s7.1`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..enums import ExecType, OrderStatus, Side
from .codec import ID_BYTES_MAX, NO_HANDLE
from .market_events import Forgotten, OrderEntered, RequestRefusal, StatusReport

OPEN_MAX = 1_024
"""Orders that one strategy may have open, as in the service."""
FINISHED_MAX = 4_096
"""Finished orders whose late reports, such as a corrected fill, still find them."""

_BEGINS = (ExecType.PENDING_NEW, ExecType.REJECTED, ExecType.ORDER_STATUS)


@dataclass
class TrackedOrder:
    root: str
    int_id: str
    """The current id."""
    security_id: int
    side: Side
    quantity: int
    limit: int | None
    stop: int | None
    status: OrderStatus = OrderStatus.PENDING_NEW
    filled: int = 0
    handle: int = NO_HANDLE
    is_in_flight: bool = True
    """Whether the server has not reported it yet."""
    version: int = 0
    """Number of the last modification that was requested."""
    held_cancel: str | None = None
    """Id of a cancel that waits for the handle."""


class OrderTable:
    def __init__(self) -> None:
        # By root, in order of submission.
        self._open: dict[str, TrackedOrder] = {}
        self._finished: dict[str, TrackedOrder] = {}
        self._roots_by_handle: dict[int, str] = {}

    @property
    def open(self) -> list[TrackedOrder]:
        return list(self._open.values())

    @property
    def has_room(self) -> bool:
        return len(self._open) < OPEN_MAX

    @property
    def has_held(self) -> bool:
        """Whether a cancel waits for the handle of its order."""
        return any(order.held_cancel is not None for order in self._open.values())

    def find_open(self, root: str) -> TrackedOrder | None:
        return self._open.get(root)

    def root_of(self, handle: int) -> str | None:
        return self._roots_by_handle.get(handle)

    def add(self, order: TrackedOrder) -> None:
        self._open[order.root] = order

    def withdraw(self, root: str) -> None:
        """Removes an order that was never sent."""
        self._open.pop(root, None)

    def next_version(self, order: TrackedOrder) -> str | None:
        """Returns the id of the next modification; None if there is no room for it."""
        order.version += 1
        int_id = f"{order.root}.{order.version}"
        return int_id if len(int_id) <= ID_BYTES_MAX else None

    def handle_terms(self, event: OrderEntered) -> TrackedOrder | None:
        """Applies an order with its terms; returns None if it is unknown and over."""
        order = self._find(event.handle, event.int_id, event.orig_int_id)
        if order is None:
            if event.exec_type not in _BEGINS:
                return None
            root = _root(event.orig_int_id or event.int_id)
            order = TrackedOrder(
                root, event.int_id, event.security_id, event.side, event.quantity, event.limit, event.stop
            )
            self._open[root] = order
        order.security_id, order.side, order.quantity = event.security_id, event.side, event.quantity
        order.limit, order.stop = event.limit, event.stop
        self._apply(order, event.handle, event.int_id, event.exec_type, event.status)
        return order

    def handle_status(self, event: StatusReport) -> TrackedOrder | None:
        order = self._find(event.handle, event.int_id, event.orig_int_id)
        if order is None:
            return None
        order.quantity, order.filled = event.quantity, event.filled
        self._apply(order, event.handle, event.int_id, event.exec_type, event.status)
        return order

    def handle_refusal(self, event: RequestRefusal) -> TrackedOrder | None:
        root = self._roots_by_handle.get(event.handle)
        order = None if root is None else self._open.get(root) or self._finished.get(root)
        # Without an id, the shard no longer knows the order, and the status belongs to none.
        if order is not None and event.int_id:
            order.status = event.status
            self._settle(order)
        return order

    def handle_forgotten(self, event: Forgotten) -> None:
        root = self._roots_by_handle.get(event.handle)
        if root is not None and root in self._finished:
            self._forget(self._finished[root])

    def _find(self, handle: int, int_id: str, orig_int_id: str) -> TrackedOrder | None:
        root = self._roots_by_handle.get(handle)
        if root is not None:
            return self._open.get(root) or self._finished.get(root)
        for id in (int_id, orig_int_id):
            order = self._open.get(id) if id else None
            if order is not None and order.is_in_flight:
                return order
        return None

    def _apply(self, order: TrackedOrder, handle: int, int_id: str, what: ExecType, status: OrderStatus) -> None:
        order.status = status
        if order.is_in_flight:
            order.is_in_flight = False
            order.handle = handle
            if handle != NO_HANDLE:
                self._roots_by_handle[handle] = order.root
        if what in (ExecType.REPLACED, ExecType.ORDER_STATUS):
            order.int_id = int_id
            order.version = max(order.version, _version(int_id, order.root))
        self._settle(order)

    def _settle(self, order: TrackedOrder) -> None:
        if order.status.is_finished and order.root in self._open:
            del self._open[order.root]
            self._finished[order.root] = order
            if len(self._finished) > FINISHED_MAX:
                self._forget(next(iter(self._finished.values())))
        elif not order.status.is_finished and order.root in self._finished:
            # A corrected fill has opened it again.
            del self._finished[order.root]
            self._open[order.root] = order

    def _forget(self, order: TrackedOrder) -> None:
        self._finished.pop(order.root, None)
        self._roots_by_handle.pop(order.handle, None)


def _root(int_id: str) -> str:
    """Returns the id under which a strategy submitted an order: the part before the version."""
    root, dot, version = int_id.rpartition(".")
    return root if dot and version.isdigit() else int_id


def _version(int_id: str, root: str) -> int:
    text = int_id[len(root) + 1 :]
    return int(text) if int_id.startswith(f"{root}.") and text.isdigit() else 0
