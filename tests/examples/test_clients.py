"""The clients over FIX, STOMP and REST do what their folders say."""

import json
import re
import subprocess
import sys

import pytest
from pitlane import Pitlane
from programs import (
    EXAMPLES,
    REFUSED,
    RUN_S_MAX,
    assert_reports_an_error,
    need,
    node_program,
    output_of,
    quickfix_program,
    rust_program,
)

RESTED = ["PENDING_NEW", "NEW", "PENDING_REPLACE", "NEW", "PENDING_CANCEL", "CANCELED", "PENDING_NEW", "NEW"]


def settings_at(address, folder):
    """Writes the settings of the FIX example with another address, and returns their path."""
    host, _, port = address.rpartition(":")
    text = (EXAMPLES / "fix" / "client.cfg").read_text()
    text = re.sub("(?<=SocketConnectHost=).*", host, text)
    path = folder / f"client-{port}.cfg"
    path.write_text(re.sub("(?<=SocketConnectPort=).*", port, text))
    return path


def fix_command(name, address, folder):
    if name == "quickfix":
        return [quickfix_program(), settings_at(address, folder)]
    if name == "python":
        return [sys.executable, EXAMPLES / "fix" / "client.py", settings_at(address, folder)]
    return [rust_program("fix/rust", "fix-client"), address]


@pytest.mark.parametrize("name", ["quickfix", "python", "rust"])
def test_a_fix_client_rests_replaces_cancels_and_buys(service, name, tmp_path):
    lines = output_of(fix_command(name, service.addresses["fix"], tmp_path), tmp_path).splitlines()
    assert (lines[0], lines[-1]) == ("logged on as CLIENT1", "logged out")
    reports = [line.split() for line in lines[1:-1]]
    statuses = [report[1] for report in reports]
    assert statuses[: len(RESTED)] == RESTED
    assert statuses[-1] == "FILLED" and set(statuses[len(RESTED) : -1]) <= {"PARTIALLY_FILLED"}
    with Pitlane(service.url) as client:
        canceled, bought = client.order(reports[0][0]), client.order(reports[-1][0])
    assert (canceled.status, canceled.quantity) == ("CANCELED", 10)
    assert (bought.status, bought.filled_quantity) == ("FILLED", 3)


@pytest.mark.parametrize("name", ["quickfix", "python", "rust"])
def test_a_fix_client_reports_that_nothing_listens(name, tmp_path):
    assert_reports_an_error(fix_command(name, REFUSED, tmp_path), tmp_path)


def stomp_command(name, tcp, websocket, *options):
    """Returns the command for two seconds; `options` are topics."""
    if name == "python":
        return [sys.executable, EXAMPLES / "stomp" / "consumer.py", "--address", tcp, "--seconds", "2", *options]
    if name == "javascript":
        need("node", "nodejs")
        return ["node", node_program(), f"ws://{websocket}/stomp", "2", *options]
    return [rust_program("stomp/rust", "stomp-consumer"), tcp, "2", *options]


@pytest.mark.parametrize("name", ["python", "javascript", "rust"])
def test_a_stomp_consumer_prints_ticks_and_order_changes(service, name, tmp_path):
    command = stomp_command(name, service.addresses["stomp"], service.addresses["http"])
    files = (tmp_path / "out").open("w+"), (tmp_path / "err").open("w+")
    with Pitlane(service.url) as client, files[0] as out, files[1] as err:
        consumer = subprocess.Popen([str(part) for part in command], stdout=out, stderr=err)
        ids = set()
        try:
            # Orders until the consumer ends, because only the consumer knows when it is connected.
            while consumer.poll() is None:
                order = client.buy(1, 5, limit="100.25")
                client.cancel(order)
                ids.add(order.int_id)
            code = consumer.wait(RUN_S_MAX)
        finally:
            consumer.kill()
        out.seek(0), err.seek(0)
        lines, problems = out.read().splitlines(), err.read()
    assert code == 0, problems
    assert re.fullmatch(r"\d+ events", lines[-1]) and int(lines[-1].split()[0]) == len(lines) - 1
    changes = [line.split(maxsplit=1) for line in lines if line.startswith("pitlane.SERVER.")]
    assert changes and {topic.removeprefix("pitlane.SERVER.") for topic, _ in changes} <= ids
    ticks = [line.split(maxsplit=1) for line in lines if line.startswith("tick.")]
    if name == "rust":
        assert {json.loads(body)["type"] for _, body in changes} == {"ORDER_STATUS"}
        assert {json.loads(body)["type"] for _, body in ticks} == {"TICK"}
    else:
        assert {text for _, text in changes} >= {"BUY 5 AAPL NEW", "BUY 5 AAPL CANCELED"}
        assert any(re.fullmatch(r"AAPL bid [\d.]+ ask [\d.]+ last [\d.]+", text) for _, text in ticks)


@pytest.mark.parametrize("name", ["python", "javascript", "rust"])
def test_a_stomp_consumer_reports_a_wrong_address_and_a_wrong_topic(service, name, tmp_path):
    assert_reports_an_error(stomp_command(name, REFUSED, REFUSED), tmp_path)
    wrong_topic = stomp_command(name, service.addresses["stomp"], service.addresses["http"], "ti*")
    assert_reports_an_error(wrong_topic, tmp_path, "whole segment")


def test_the_curl_script_shows_the_life_of_an_order(service, tmp_path):
    need("curl", "curl")
    output = output_of([EXAMPLES / "rest" / "orders.sh", service.url], tmp_path)
    answers = [json.loads(line) for line in output.splitlines() if line.startswith(("{", "["))]
    found, rested, modified, read, canceled, refused, bought, positions = answers
    assert found[0]["symbol"] == "AAPL" and (rested["status"], rested["quantity"]) == ("NEW", 5)
    assert (modified["status"], modified["quantity"], read) == ("NEW", 10, [modified])
    assert (canceled["status"], refused["code"]) == ("CANCELED", "bad-lot")
    assert bought["type"] == "MARKET" and bought["status"] in ("NEW", "PARTIALLY_FILLED", "FILLED")
    assert "AAPL" in {position["symbol"] for position in positions}
    assert_reports_an_error([EXAMPLES / "rest" / "orders.sh", f"http://{REFUSED}"], tmp_path, "Failed to connect")


def test_the_python_program_shows_the_life_of_an_order(service, tmp_path):
    program = [sys.executable, EXAMPLES / "rest" / "orders.py"]
    lines = output_of([*program, service.url], tmp_path).splitlines()
    kinds = [line.split(":")[0].split(" at ")[0] for line in lines if not line.startswith("update:")]
    assert kinds[:5] == ["resting", "modified", "cancelled", "refused", "bought"] and "position" in kinds
    assert "CANCELED filled 0 of 10" in lines[2] and lines[3].startswith("refused: bad-lot: ")
    assert any(line.startswith("bought at ") and line.endswith("FILLED filled 3 of 3") for line in lines)
    assert_reports_an_error([*program, f"http://{REFUSED}"], tmp_path)
