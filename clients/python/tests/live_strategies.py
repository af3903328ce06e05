"""Strategies for the tests of live trading; as a program, runs `Filler` until it is stopped.

python live_strategies.py ADDRESS RECORD
"""

from __future__ import annotations

import sys

import pitlane

OPEN_ORDERS = 40
"""Open orders at which `Filler` is content."""


class Filler(pitlane.Strategy):
    """Keeps a number of resting orders, those of earlier processes included."""

    name = "MOMENTUM"

    def on_phase(self, phase, context):
        if phase == "INIT":
            context.subscribe("AAPL")

    def on_tick(self, tick, context):
        self.fill(context)

    def on_timer(self, timer, context):
        self.fill(context)

    def fill(self, context):
        if context.phase == "RUNNING":
            for _ in range(min(3, OPEN_ORDERS - len(context.orders()))):
                context.buy("AAPL", 1, limit=10.25)
            context.set_timer(1, after_s=0.005)


class Journey(pitlane.Strategy):
    """Goes through the life of an order: entered, modified, cancelled; then buys and sells."""

    name = "MOMENTUM"

    def __init__(self):
        self.phases, self.reports, self.fills, self.refusals, self.bookings = [], [], [], [], []
        self.ticks = self.bars = 0
        self.errors = {}
        self.is_done = False

    def on_phase(self, phase, context):
        self.phases.append(phase)
        if phase == "INIT":
            context.subscribe("AAPL", bar_s=0.05)
            self.try_to(context, "early", lambda: context.buy("AAPL", 1))

    def on_bar(self, bar, context):
        self.bars += 1

    def on_tick(self, tick, context):
        self.ticks += 1
        if context.phase != "RUNNING" or self.reports:
            return
        assert tick == context.tick("AAPL") and tick.symbol == "AAPL"
        self.try_to(context, "off grid", lambda: context.buy("AAPL", 1, limit=10.255))
        self.try_to(context, "unknown", lambda: context.buy("NONE", 1))
        self.order = context.buy("AAPL", 2, limit=10.25)
        assert [row.int_id for row in context.orders("AAPL")] == [self.order]
        # It is not acknowledged yet.
        context.modify(self.order, limit=10.5)

    def on_order_status(self, report, context):
        self.reports.append((report.int_id, report.exec_type.value, report.status.value))
        if report.int_id != self.order or report.status != "NEW":
            return
        if report.exec_type == "NEW":
            context.modify(self.order, limit=10.5, quantity=1)
        elif report.exec_type == "REPLACED":
            assert context.order(self.order).limit == 10.5
            context.cancel(self.order)
            context.set_timer(1, after_s=0.02)

    def on_refused(self, refusal, context):
        self.refusals.append((refusal.request, refusal.reason))

    def on_fill(self, fill, context):
        self.fills.append((fill.side.value, fill.quantity))

    def on_transaction(self, transaction, context):
        self.bookings.append(transaction.position)
        assert context.position("AAPL").quantity == transaction.position
        # A fill may be partial.
        if transaction.position == 3:
            context.sell("AAPL", 3)
        elif transaction.position == 0:
            self.cash = context.cash("USD")
            self.is_done = True

    def on_timer(self, timer, context):
        context.buy("AAPL", 3)

    def try_to(self, context, name, action):
        try:
            action()
        except Exception as error:
            self.errors[name] = error


class Failing(pitlane.Strategy):
    """Leaves an order in the market and fails."""

    name = "PAIRS"

    def on_phase(self, phase, context):
        if phase == "RUNNING":
            context.buy("MSFT", 1, limit=10)
            context.set_timer(1, after_s=0.2)

    def on_timer(self, timer, context):
        raise ZeroDivisionError("the spread is zero")


class Talker(pitlane.Strategy):
    """Sends an event whenever it receives one, until there were enough."""

    def __init__(self, name, begins):
        self.name, self.begins, self.heard = name, begins, []

    def on_phase(self, phase, context):
        if phase == "RUNNING":
            context.set_timer(1, after_s=0.05)

    def on_timer(self, timer, context):
        if self.begins and not self.heard:
            context.send_generic("count", {"n": 1})
            context.set_timer(1, after_s=0.5)

    def on_generic(self, name, data, context):
        self.heard.append((name, data["n"]))
        if data["n"] < 10:
            context.send_generic(name, {"n": data["n"] + 1})


if __name__ == "__main__":
    pitlane.run(Filler(), sys.argv[1], record=sys.argv[2])
