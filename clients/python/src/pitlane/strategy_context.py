"""What a strategy sees and may do during a callback.

```text
Strategy ─► Context: symbols, floats, words ─► Core: ids and whole numbers ─► engine or server
```

`Context` is the same in a back-test and live, so that both accept and refuse the same requests in
the same words. A `Core` does the rest: that of a back-test is native, that of a live strategy sends
messages.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Protocol, Tuple, Union

from .enums import Mode, OrderStatus, OrderType, Phase, Side, TimeInForce
from .requests import NewOrder
from .strategy_numbers import Amount, on_grid, reader_of
from .strategy_values import Instrument, OpenOrder, StrategyPosition, StrategyTick
from .values import Security
from .wire import time_of_ns

SecurityKey = Union[int, str]
"""A security by its id or by its symbol."""
OrderKey = Union[str, OpenOrder]
"""An order by its id, or as `Context.orders` returns it."""
InstrumentRow = Tuple[int, str, str, int, int, int]
"""Id, symbol, currency; tick, lot and contract size."""
OrderRow = Tuple[str, int, str, str, str, int, int, Optional[int], Optional[int]]
"""Id, security, symbol, side, status; quantity, filled quantity, limit, stop."""

SubmitRow = Tuple[int, str, str, int, Optional[int], Optional[int], str, int, int, bool]
"""Security, side, type; quantity, limit, stop; time in force and its date (0: none); account (0:
the one of the exchange); whether it is an order for the exchange."""
ChangesRow = Tuple[Optional[int], Optional[int], Optional[int], Optional[str], Optional[int]]
"""Quantity, limit, stop; time in force and its date. None stays unchanged."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Core(Protocol):
    """The part of a context that depends on where the strategy runs.

    Amounts are in units of 10⁻⁸. A refused request raises `RequestRefused`.
    """

    def now_ns(self) -> int: ...
    def phase(self) -> str: ...
    def mode(self) -> str: ...
    def name(self) -> str: ...
    def base_currency(self) -> str: ...
    def security(self, key: SecurityKey) -> InstrumentRow: ...
    def subscribe(self, security_id: int, on: bool) -> None: ...
    def subscribe_bars(self, security_id: int, interval_ns: int) -> None: ...
    def submit(self, order: SubmitRow) -> str: ...
    def modify(self, int_id: str, changes: ChangesRow) -> None: ...
    def cancel(self, int_id: str) -> None: ...
    def cancel_all(self) -> None: ...
    def position(self, security_id: int) -> tuple[int, int | None, int]:
        """Returns quantity, average price and realised profit."""
        ...

    def orders(self) -> list[OrderRow]: ...
    def cash(self, currency: str) -> int | None: ...
    def tick(self, security_id: int) -> StrategyTick | None: ...
    def set_timer(self, timer: int, at_ns: int) -> None: ...
    def clear_timer(self, timer: int) -> None: ...
    def send_generic(self, name: str, body: bytes) -> None: ...


class Context:
    """What a strategy sees and may do.

    It is valid during a callback only. Prices and quantities may be floats, ints, `Decimal`s or
    strings; a price that is not on the tick grid is refused with the nearest valid prices. A
    request leaves when the callback is over.
    """

    def __init__(self, core: Core, decimals: str = "float") -> None:
        self._core = core
        self._decimals = decimals
        self._read = reader_of(decimals)
        self._instruments: dict[SecurityKey, Instrument] = {}
        self._log = logging.getLogger(f"pitlane.strategy.{core.name()}")

    @property
    def name(self) -> str:
        """The name of the strategy."""
        return self._core.name()

    @property
    def now_ns(self) -> int:
        """The time in nanoseconds since the epoch: of the clock, or in a back-test of the data."""
        return self._core.now_ns()

    @property
    def now(self) -> datetime:
        """The time in UTC, with microseconds."""
        return time_of_ns(self._core.now_ns())

    @property
    def phase(self) -> Phase:
        return Phase(self._core.phase())

    @property
    def mode(self) -> Mode:
        """SIMULATION in a back-test, REAL_TIME otherwise."""
        return Mode(self._core.mode())

    def security(self, security: SecurityKey) -> Instrument:
        """Returns a security with its tick and lot size.

        A symbol that several exchanges trade is refused; its id is needed then.
        """
        known = self._instruments.get(security)
        if known is None:
            id, symbol, currency, tick, lot, contract = self._core.security(security)
            read = self._read
            known = Instrument(id, symbol, currency, read(tick), read(lot), read(contract), tick, lot, self._decimals)
            self._instruments[security] = known
        return known

    def tick(self, security: SecurityKey) -> StrategyTick | None:
        """Returns the newest tick of a subscribed security; None before the first."""
        return self._core.tick(self.security(security).id)

    def position(self, security: SecurityKey) -> StrategyPosition:
        """Returns the position; it is flat if there never was one."""
        of = self.security(security)
        quantity, avg_price, realized = self._core.position(of.id)
        read = self._read
        average = None if avg_price is None else read(avg_price)
        return StrategyPosition(of.id, of.symbol, read(quantity), average, read(realized))

    def orders(self, security: SecurityKey | None = None) -> list[OpenOrder]:
        """Returns its orders that have not ended, in order of submission."""
        only = None if security is None else self.security(security).id
        return [self._order(row) for row in self._core.orders() if only is None or row[1] == only]

    def order(self, order: OrderKey) -> OpenOrder | None:
        """Returns an order; None once it has ended."""
        row = self._row(order)
        return None if row is None else self._order(row)

    def cash(self, currency: str | None = None) -> Any:
        """Returns the cash in a currency, by default in the base currency of the service."""
        amount = self._core.cash(currency or self._core.base_currency())
        if amount is None:
            raise OverflowError("the cash is more than can be counted")
        return self._read(amount)

    def subscribe(self, security: SecurityKey, *, bar_s: float | None = None) -> None:
        """Subscribes to the ticks of a security, and to bars of `bar_s` seconds if given."""
        of = self.security(security).id
        if bar_s is None:
            return self._core.subscribe(of, True)
        interval_ns = round(bar_s * 1_000_000_000)
        if interval_ns <= 0:
            raise ValueError(f"bar_s {bar_s} must be above zero")
        self._core.subscribe_bars(of, interval_ns)

    def unsubscribe(self, security: SecurityKey) -> None:
        """Ends the subscription to ticks and bars of a security."""
        self._core.subscribe(self.security(security).id, False)

    def buy(
        self,
        security: SecurityKey,
        quantity: Amount,
        *,
        limit: Amount | None = None,
        stop: Amount | None = None,
        tif: TimeInForce | str = TimeInForce.DAY,
        tif_date: datetime | None = None,
        account_id: int = 0,
    ) -> str:
        """Buys, and returns the id of the order. Without prices it is a market order."""
        return self._send(Side.BUY, security, quantity, limit, stop, tif, tif_date, account_id, False)

    def sell(
        self,
        security: SecurityKey,
        quantity: Amount,
        *,
        limit: Amount | None = None,
        stop: Amount | None = None,
        tif: TimeInForce | str = TimeInForce.DAY,
        tif_date: datetime | None = None,
        account_id: int = 0,
    ) -> str:
        """Sells, and returns the id of the order. Without prices it is a market order."""
        return self._send(Side.SELL, security, quantity, limit, stop, tif, tif_date, account_id, False)

    def submit(self, order: NewOrder) -> str:
        """Sends an order and returns its id, which the platform chooses."""
        for field in ("int_id", "strategy_id", "strategy_name", "exchange_id"):
            if getattr(order, field) is not None:
                raise ValueError(f"{field} must be None: an order of a strategy gets its own")
        tif_date = order.tif_date
        if tif_date is not None and not isinstance(tif_date, datetime):
            raise TypeError("tif_date must be a datetime with a time zone")
        named = order.security_id
        return self._send(
            order.side,
            named.id if isinstance(named, Security) else named,
            order.quantity,
            getattr(order, "limit", None),
            getattr(order, "stop", None),
            order.tif or TimeInForce.DAY,
            tif_date,
            order.account_id or 0,
            bool(order.exchange_order),
        )

    def modify(
        self,
        order: OrderKey,
        *,
        quantity: Amount | None = None,
        limit: Amount | None = None,
        stop: Amount | None = None,
        tif: TimeInForce | str | None = None,
        tif_date: datetime | None = None,
    ) -> None:
        """Modifies an order, which keeps its id. A value of None stays unchanged."""
        int_id = _id_of(order)
        row = self._row(int_id)
        raw: list[int | None] = [None, None, None]
        if row is not None:
            of = self.security(row[1])
            raw[0] = None if quantity is None else _quantity(of, quantity)
            raw[1], raw[2] = _price(of, limit, "limit"), _price(of, stop, "stop")
        tif_name = None if tif is None else TimeInForce(tif).value
        date_ns = None if tif_date is None else ns_of(tif_date)
        self._core.modify(int_id, (raw[0], raw[1], raw[2], tif_name, date_ns))

    def cancel(self, order: OrderKey) -> None:
        """Cancels an order, in every phase."""
        self._core.cancel(_id_of(order))

    def cancel_all(self) -> None:
        """Cancels all its open orders."""
        self._core.cancel_all()

    def set_timer(self, timer: int, *, at: datetime | int | None = None, after_s: float | None = None) -> None:
        """Calls `on_timer` with this number at a time, or after some seconds.

        `at` is a datetime with a time zone, or nanoseconds since the epoch. Setting the same timer
        again moves it.
        """
        if (at is None) == (after_s is None):
            raise ValueError("set_timer needs either at or after_s")
        if after_s is not None:
            if after_s < 0:
                raise ValueError(f"after_s {after_s} must not be negative")
            at = self._core.now_ns() + round(after_s * 1_000_000_000)
        assert at is not None
        self._core.set_timer(timer, ns_of(at) if isinstance(at, datetime) else at)

    def clear_timer(self, timer: int) -> None:
        self._core.clear_timer(timer)

    def send_generic(self, name: str, data: Any) -> None:
        """Sends an event to the other strategies and to subscribed clients. `data` becomes JSON."""
        self._core.send_generic(name, json.dumps(data, separators=(",", ":")).encode())

    def log(self, message: str, level: int | str = logging.INFO) -> None:
        """Writes a message to the logger `pitlane.strategy.NAME`, with the time of the strategy."""
        number = logging.getLevelName(level) if isinstance(level, str) else level
        if not isinstance(number, int):
            raise ValueError(f"{level!r} is not a log level such as INFO or WARNING")
        if self._log.isEnabledFor(number):
            self._log.log(number, "%s %s", self.now.isoformat(), message)

    def _send(
        self,
        side: Side | str,
        security: SecurityKey,
        quantity: Amount,
        limit: Amount | None,
        stop: Amount | None,
        tif: TimeInForce | str,
        tif_date: datetime | None,
        account_id: int,
        exchange_order: bool,
    ) -> str:
        of = self.security(security)
        kind = _TYPES[limit is not None, stop is not None]
        row = (
            of.id,
            Side(side).value,
            kind.value,
            _quantity(of, quantity),
            _price(of, limit, "limit"),
            _price(of, stop, "stop"),
            TimeInForce(tif).value,
            0 if tif_date is None else ns_of(tif_date),
            account_id,
            exchange_order,
        )
        return self._core.submit(row)

    def _row(self, order: OrderKey) -> OrderRow | None:
        int_id = _id_of(order)
        return next((row for row in self._core.orders() if row[0] == int_id), None)

    def _order(self, row: OrderRow) -> OpenOrder:
        int_id, security_id, symbol, side, status, quantity, filled, limit, stop = row
        read = self._read
        return OpenOrder(
            int_id,
            security_id,
            symbol,
            Side(side),
            OrderStatus(status),
            read(quantity),
            read(filled),
            None if limit is None else read(limit),
            None if stop is None else read(stop),
        )


_TYPES = {
    (False, False): OrderType.MARKET,
    (True, False): OrderType.LIMIT,
    (False, True): OrderType.STOP,
    (True, True): OrderType.STOP_LIMIT,
}


def ns_of(at: datetime) -> int:
    """Returns a time as nanoseconds since the epoch."""
    if at.tzinfo is None:
        raise ValueError("a time needs a time zone, for example datetime.now(timezone.utc)")
    return (at - _EPOCH) // timedelta(microseconds=1) * 1_000


def _id_of(order: OrderKey) -> str:
    return order.int_id if isinstance(order, OpenOrder) else order


def _quantity(of: Instrument, quantity: Amount) -> int:
    raw = on_grid(quantity, of.lot_raw, "quantity", "lot", of.symbol)
    if raw <= 0:
        raise ValueError(f"quantity {quantity} must be above zero")
    return raw


def _price(of: Instrument, price: Amount | None, field: str) -> int | None:
    return None if price is None else on_grid(price, of.tick_raw, field, "tick", of.symbol)
