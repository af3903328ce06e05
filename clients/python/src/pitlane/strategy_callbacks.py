"""Calls the callbacks of a strategy with typed values.

The caller, a back-test or the link to a server, passes plain tuples with amounts in units of 10⁻⁸.
Ticks are the exception: they are frequent, so the caller creates them itself.
"""

from __future__ import annotations

import json
import traceback
from types import TracebackType
from typing import Any, Callable, Optional, Tuple

from .enums import ExecType, OrderStatus, OrderType, Phase, Side, TimeInForce, TransactionType
from .strategy import Strategy
from .strategy_context import Context, Core
from .strategy_numbers import reader_of
from .strategy_values import Fill, OrderReport, Refusal, StrategyBar, StrategyTick, StrategyTransaction

BarRow = Tuple[int, str, int, int, int, int, int, int, int, int]
"""Security, symbol, start, interval; open, high, low, close, volume; ticks."""
ReportNames = Tuple[str, int, int, str, str, str, str, str, str]
"""Id, time, security, symbol, side, type, time in force, exec type, status."""
ReportNumbers = Tuple[int, int, int, int, int, Optional[str], Optional[str]]
"""Quantity, filled quantity, mean price, last quantity, last price; a reason as code and text."""
TransactionRow = Tuple[int, int, str, Optional[int], Optional[str], int, int, int, str, Optional[str], int, int]
"""Id, time, type, security, symbol; quantity, price, commission; currency, order; position and
realised profit."""

CALLBACKS = (
    "on_phase",
    "on_tick",
    "on_bar",
    "on_order_status",
    "on_fill",
    "on_refused",
    "on_transaction",
    "on_generic",
    "on_timer",
)


class Callbacks:
    """One strategy and its context. A callback that the class does not override is not called."""

    def __init__(self, strategy: Strategy, core: Core) -> None:
        self.strategy = strategy
        self.context = Context(core, strategy.decimals)
        self._read = reader_of(strategy.decimals)
        overridden = {name for name in CALLBACKS if _is_overridden(strategy, name)}
        self.wants_statuses = bool({"on_order_status", "on_fill"} & overridden)
        self.wants_transactions = "on_transaction" in overridden
        self.wants_bars = "on_bar" in overridden
        self.on_tick: Optional[Callable[[StrategyTick, Context], None]] = (
            strategy.on_tick if "on_tick" in overridden else None
        )

    def phase(self, phase: str) -> None:
        self.strategy.on_phase(Phase(phase), self.context)

    def bar(self, row: BarRow) -> None:
        security_id, symbol, start, interval_ns, open, high, low, close, volume, ticks = row
        read = self._read
        bar = StrategyBar(
            security_id,
            symbol,
            start,
            interval_ns / 1e9,
            read(open),
            read(high),
            read(low),
            read(close),
            read(volume),
            ticks,
        )
        self.strategy.on_bar(bar, self.context)

    def order_status(self, names: ReportNames, numbers: ReportNumbers) -> None:
        int_id, time_ns, security_id, symbol, side, type, tif, exec_type, status = names
        quantity, filled, avg_price, last_quantity, last_price, reason, message = numbers
        read = self._read
        is_fill = last_quantity != 0
        report = OrderReport(
            int_id,
            time_ns,
            security_id,
            symbol,
            Side(side),
            OrderType(type),
            TimeInForce(tif),
            ExecType(exec_type),
            OrderStatus(status),
            read(quantity),
            read(filled),
            read(quantity - filled),
            read(avg_price) if filled else None,
            read(last_quantity) if is_fill else None,
            read(last_price) if is_fill else None,
            reason,
            message,
        )
        self.strategy.on_order_status(report, self.context)
        if report.exec_type is ExecType.TRADE:
            fill = Fill(
                int_id,
                time_ns,
                security_id,
                symbol,
                report.side,
                read(last_quantity),
                read(last_price),
                report.filled_quantity,
                report.remaining_quantity,
            )
            self.strategy.on_fill(fill, self.context)

    def refused(self, int_id: str, request: str, reason: str, message: str) -> None:
        self.strategy.on_refused(Refusal(int_id, request, reason, message), self.context)

    def transaction(self, row: TransactionRow) -> None:
        id, time_ns, type, security_id, symbol, quantity, price, commission = row[:8]
        currency, int_id, position, realized = row[8:]
        read = self._read
        transaction = StrategyTransaction(
            id,
            time_ns,
            TransactionType(type),
            security_id,
            symbol,
            read(quantity),
            read(price),
            read(commission),
            currency,
            int_id,
            read(position),
            read(realized),
        )
        self.strategy.on_transaction(transaction, self.context)

    def generic(self, name: str, body: bytes) -> None:
        self.strategy.on_generic(name, json.loads(body), self.context)

    def timer(self, timer: int) -> None:
        self.strategy.on_timer(timer, self.context)


def failure_text(error: BaseException, trace: Optional[TracebackType] = None) -> str:
    """Returns the reason of a failure: the traceback without the frames of this module."""
    frames = traceback.extract_tb(trace or error.__traceback__)
    own = [frame for frame in frames if not _is_ours(frame.filename)]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own or frames)]
    return "".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip()


def _is_overridden(strategy: Any, name: str) -> bool:
    return getattr(type(strategy), name) is not getattr(Strategy, name) or name in vars(strategy)


def _is_ours(path: str) -> bool:
    return path == __file__
