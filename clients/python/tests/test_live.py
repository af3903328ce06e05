"""Strategies as processes of their own, at a real server over the strategy link."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import live_strategies
import pytest
from conftest import TIMEOUT_S
from live_strategies import OPEN_ORDERS, Failing, Filler, Journey, Talker
from pitlane import LinkRejected, Pitlane, Retry, run

SETTINGS = (Path(__file__).parent / "data" / "distributed.toml").read_text()
KILLS = 4


@pytest.fixture()
def server(new_service):
    return new_service(config=SETTINGS).start()


def address(service):
    return f"unix:{service.folder / 'strategies.sock'}"


class Running:
    """A strategy in a thread of this process."""

    def __init__(self, strategy, where, **arguments):
        self.strategy, self._stop, self.error = strategy, threading.Event(), None
        self._thread = threading.Thread(target=self._run, args=(where, arguments), daemon=True)
        self._thread.start()

    def _run(self, where, arguments):
        try:
            run(self.strategy, where, stop=self._stop, **arguments)
        except Exception as error:
            self.error = error

    def stop(self):
        self._stop.set()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, f"this did not happen in time: {what}"
        time.sleep(0.01)


def phases(client):
    return {row.name: row for row in client.strategies()}


def test_a_strategy_lives_through_all_phases_and_trades(server):
    running = Running(Journey(), address(server))
    journey = running.strategy
    wait_for(lambda: journey.is_done and journey.bars, "the journey ends")
    with Pitlane(server.url) as client:
        assert phases(client)["MOMENTUM"].phase == "RUNNING"
        history = {order.int_id: order for order in client.order_history() if order.strategy_name == "MOMENTUM"}
        running.stop()
        wait_for(lambda: phases(client)["MOMENTUM"].phase == "EXIT", "the shards know the end")
    assert journey.phases == ["INIT", "PREFEED", "START", "RUNNING", "STOP", "EXIT"]
    assert journey.errors["early"].reason == "strategy-not-running"
    assert "10.25 and 10.26" in str(journey.errors["off grid"])
    assert journey.errors["unknown"].reason == "unknown-security"
    assert journey.refusals == [("modify", "not-acknowledged")]
    own = [(what, status) for int_id, what, status in journey.reports if int_id == journey.order]
    assert own[0] == ("PENDING_NEW", "PENDING_NEW") and own[-1] == ("CANCELED", "CANCELED")
    assert ("REPLACED", "NEW") in own
    assert sum(quantity for side, quantity in journey.fills if side == "BUY") == 3
    assert sum(quantity for side, quantity in journey.fills if side == "SELL") == 3
    assert journey.bookings[-1] == 0 and isinstance(journey.cash, float)
    assert Counter(order.status.value for order in history.values()) == {"CANCELED": 1, "FILLED": 2}
    assert {order.source for order in history.values()} == {"STRATEGY"}


def test_a_strategy_that_fails_is_stopped_and_its_orders_are_cancelled(server):
    running = Running(Failing(), address(server))
    with Pitlane(server.url) as client:
        wait_for(lambda: phases(client)["PAIRS"].reason, "the failure is known")
        assert "ZeroDivisionError: the spread is zero" in phases(client)["PAIRS"].reason
        assert "on_timer" in phases(client)["PAIRS"].reason
        wait_for(lambda: [order.status.value for order in client.order_history()] == ["CANCELED"], "the cancel")
        assert client.open_orders() == [] and phases(client)["PAIRS"].phase == "STOP"
        # An operator starts it again, in its initial state.
        client.set_phase("PAIRS", "RUNNING")
        wait_for(lambda: len(client.order_history()) == 2, "it fails again")
    running.stop()


def test_strategies_exchange_events(server):
    talkers = [Talker("MOMENTUM", True), Talker("PAIRS", False)]
    running = [Running(talker, address(server)) for talker in talkers]
    wait_for(lambda: sum(len(talker.heard) for talker in talkers) >= 10, "ten events arrive")
    for one in running:
        one.stop()
    heard = [number for talker in talkers for _, number in talker.heard]
    assert sorted(set(heard)) == list(range(1, 11))


def test_an_operator_cancels_an_order_of_a_strategy(server):
    running = Running(Filler(), address(server))
    with Pitlane(server.url, retry=Retry(attempts=1)) as client:
        wait_for(lambda: len(client.open_orders()) == OPEN_ORDERS, "all orders are open")
        cancelled = client.open_orders()[0]
        client.cancel(cancelled)
        assert client.order(cancelled.int_id).status == "CANCELED"
        # The strategy knows it, and replaces the order.
        wait_for(lambda: len(client.open_orders()) == OPEN_ORDERS, "there is another one")
    running.stop()


def test_an_unknown_strategy_is_refused(server):
    with pytest.raises(LinkRejected) as caught:
        run(Talker("ABSENT", False), address(server))
    assert caught.value.code == "unknown-strategy"
    with pytest.raises(TypeError, match=r"pitlane\.Strategy"):
        run(object(), address(server))
    with pytest.raises(ValueError, match="pitlane://HOST:PORT"):
        run(Filler(), "http://127.0.0.1:9882")


def test_a_strategy_logs_in_over_tls(new_service):
    service = new_service("strategies.tls=true", "strategies.listen=127.0.0.1:0", config=SETTINGS)
    token, admin = service.token("bot", "strategy", "MOMENTUM"), service.token("ann", "admin")
    service.start()
    where = f"pitlanes://{service.addresses['strategies+tls']}"
    for name, arguments, code in (
        ("MOMENTUM", {"token": "wrong", "verify": service.certificate}, "bad-token"),
        ("PAIRS", {"token": token, "verify": service.certificate}, "forbidden"),
        ("MOMENTUM", {"token": token}, "bad-certificate"),
    ):
        with pytest.raises(LinkRejected) as caught:
            run(Talker(name, False), where, **arguments)
        assert caught.value.code == code
    running = Running(Filler(), where, token=token, verify=service.certificate)
    with Pitlane(service.url, token=admin) as client:
        wait_for(lambda: len(client.open_orders()) == OPEN_ORDERS, "all orders are open")
    running.stop()


class Record:
    """The record of a strategy: requested ids, and the events by shard and number."""

    def __init__(self, folder: Path):
        self._path = folder / "MOMENTUM.told"

    def lines(self):
        text = self._path.read_text() if self._path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def asked(self):
        return [line[2:] for line in self.lines() if line.startswith("A ")]

    def events(self):
        return [tuple(line.split(" ", 3)[1:]) for line in self.lines() if line.startswith("E ")]


def start_filler(service, folder):
    command = [sys.executable, live_strategies.__file__, address(service), str(folder)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def test_kills_of_strategy_and_server_lose_and_double_nothing(new_service, tmp_path):
    service, rng = new_service(config=SETTINGS).start(), random.Random(1)
    record = Record(tmp_path)
    process = start_filler(service, tmp_path)
    try:
        for kill in range(KILLS):
            count = len(record.lines()) + rng.randrange(2, 12)
            wait_for(lambda count=count: len(record.lines()) >= count, f"progress before kill {kill}")
            if kill == KILLS // 2:
                service.end(9)
                service.start()
                with Pitlane(service.url) as client:
                    # Fewer open orders, so that there is something to do.
                    client.cancel_all(strategy="MOMENTUM")
            else:
                process.kill()
                process.wait()
                process = start_filler(service, tmp_path)
        with Pitlane(service.url) as client:
            wait_for(lambda: len(client.open_orders()) == OPEN_ORDERS, "all orders are open")
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
            open_ids = [order.int_id for order in client.open_orders()]
            all_ids = open_ids + [order.int_id for order in client.order_history()]
    finally:
        process.kill()
        process.wait()
    assert len(open_ids) == OPEN_ORDERS
    # No order without a request, and none twice.
    assert len(set(all_ids)) == len(all_ids) and set(all_ids) <= set(record.asked())
    assert len(set(record.asked())) == len(record.asked())
    # Each event is in the record once, and each order was reported as entered exactly once.
    numbers = [(shard, seq) for shard, seq, _ in record.events()]
    assert len(set(numbers)) == len(numbers)
    entered = [
        match.group(1) for _, _, text in record.events() if (match := re.match(r"order (\S+) PENDING_NEW ", text))
    ]
    assert Counter(entered) == Counter(all_ids)
