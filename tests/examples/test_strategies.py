"""The template for strategies outside the repository, and the same strategy in Python: the same
orders simulated, inside the server, and in a process of its own."""

import functools
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from programs import BUILD_S_MAX, EXAMPLES, TARGET, assert_reports_an_error, missing, output_of
from service import BINARY, ROOT, START_S_MAX, Service

TEMPLATE = EXAMPLES / "strategy-rust"
PYTHON = EXAMPLES / "strategy-python" / "buy_the_dip.py"
PYTHON_GUIDE = ROOT / "docs" / "guide" / "python.md"
GUIDE = ROOT / "docs" / "guide" / "strategies.md"
HEADER = "time,security,bid,bidSize,ask,askSize,last,lastSize"
START_S = 1_793_629_800
ROWS = 500
WAIT_S_MAX = 60


def blocks_of_the_guide(language, page=GUIDE):
    """Returns the code blocks of the guide in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@functools.cache
def program():
    """Returns the template as a program. It is built with the workspace, which takes seconds; with
    PITLANE_TEMPLATE=full it is built outside the repository, as its author does."""
    if os.environ.get("PITLANE_TEMPLATE") == "full":
        return build_outside()
    built = Path(BINARY).resolve().parent / "examples" / "buy-the-dip"
    if not built.exists():
        missing("the template (cargo build --profile sim --package pitlane --example buy-the-dip)")
    return built


def build_outside():
    """Follows the guide in an empty folder outside the repository; returns the program."""
    folder = Path(tempfile.mkdtemp(prefix="pitlane-outside-"))
    target = TARGET / "outside"
    try:
        commands = blocks_of_the_guide("console")[0].replace("$ ", "").replace("~/pitlane", str(ROOT))
        output_of(["sh", "-ec", commands], folder)
        place = folder / "buy-the-dip"
        strategy, main = blocks_of_the_guide("rust")[:2]
        (place / "src" / "buy_the_dip.rs").write_text(strategy)
        (place / "src" / "main.rs").write_text(main)
        shutil.copy(ROOT / "Cargo.lock", place)
        output_of(["cargo", "build", "--quiet", "--target-dir", target], place, timeout_s=4 * BUILD_S_MAX)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target / "debug" / "buy-the-dip"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the settings of the template and a price that falls and rises."""
    folder = tmp_path_factory.mktemp("dip")
    shutil.copy(TEMPLATE / "dip.toml", folder)
    mids = [200 + 1.5 * math.sin(second / 7) + second % 7 / 100 for second in range(ROWS)]
    row = "{}000000000,AAPL,{:.2f},500,{:.2f},400,,".format
    rows = [row(START_S + second, mid - 0.01, mid + 0.01) for second, mid in enumerate(mids)]
    (folder / "ticks.csv").write_text("\n".join([HEADER, *rows, ""]))
    return folder


@pytest.fixture(scope="module")
def simulated(place):
    """The trades of the simulation: quantity and price."""
    command = [program(), "simulate", "--quiet", "--config", "dip.toml", "--data", "ticks.csv", "--report", "report"]
    assert "DIP (buy-the-dip)" in output_of(command, place)
    report = json.loads((place / "report" / "report.json").read_text())
    trades = [(float(trade["quantity"]), float(trade["price"])) for trade in report["trades"]]
    assert len(trades) >= 10 and {quantity for quantity, _ in trades} == {10, -10}
    return trades


@pytest.fixture(scope="module")
def sent(place, simulated):
    """The orders of the back-test in Python: side, quantity and mean price. The hash of its run is
    that of the simulation in Rust, so the orders are the same, with their times and reports."""
    try:
        import pitlane_engine  # noqa: F401
    except ImportError:
        missing("pitlane_engine (make engine)")
    text = output_of([sys.executable, PYTHON, "ticks.csv"], place)
    report = json.loads((place / "report" / "report.json").read_text())
    assert f"hash {report['hash']}" in text.splitlines()
    orders = python_backtest(place / "ticks.csv").orders
    return list(zip(orders["side"], orders["quantity"], orders["avg_price"]))


def python_backtest(ticks):
    import pitlane

    sys.path.insert(0, str(PYTHON.parent))
    from buy_the_dip import BuyTheDip

    return pitlane.backtest(BuyTheDip(), ticks)


def get(service, path):
    with urllib.request.urlopen(f"{service.url}{path}", timeout=START_S_MAX) as answer:
        return json.load(answer)


def trades_of(service, count):
    """Waits for the trades of the service, and returns them oldest first."""
    late = time.monotonic() + WAIT_S_MAX
    while True:
        rows = get(service, "/rest/transaction/daily?strategy=DIP")
        if len(rows) >= count or time.monotonic() > late:
            return [(float(row["quantity"]), float(row["price"])) for row in reversed(rows)]
        time.sleep(0.05)


class TemplateService(Service):
    """A service of the template's program, over the data of the simulation."""

    def __init__(self, binary, place, *settings):
        super().__init__(f"replay.data={place / 'ticks.csv'}", "replay.speed=0", "demo.on=false", *settings)
        self.binary, self.files = str(binary), [str(place / "dip.toml")]


def test_the_strategy_trades_in_the_server_as_in_simulation(place, simulated):
    service = TemplateService(program(), place).start()
    try:
        assert trades_of(service, len(simulated)) == simulated
        row = next(row for row in get(service, "/rest/strategy") if row["name"] == "DIP")
        assert row["phase"] == "RUNNING"
    finally:
        service.remove()


def nats_server(folder):
    """Starts a broker on a free port, and returns it with its address."""
    binary = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if binary is None:
        missing("nats-server (apt install nats-server)")
    ports = folder / "ports"
    ports.mkdir(exist_ok=True)
    command = [binary, "-js", "-a", "127.0.0.1", "-p", "-1", "-sd", folder / "nats", "--ports_file_dir", ports]
    broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    late = time.monotonic() + START_S_MAX
    while time.monotonic() < late:
        for file in ports.glob("*.ports"):
            text = file.read_text()
            if text:
                url = json.loads(text)["nats"][0]
                host, port = re.match(r"nats://(.*):(\d+)", url).groups()
                socket.create_connection((host, int(port)), START_S_MAX).close()
                return broker, url
        time.sleep(0.01)
    broker.kill()
    pytest.fail("the broker does not start")


def test_the_strategy_in_python_sends_the_same_orders_live(place, simulated, sent):
    service = TemplateService(BINARY, place, "strategies.listen=127.0.0.1:0")
    service.files.insert(0, "distributed")
    process = None
    try:
        service.start()
        url = f"pitlane://{service.addresses['strategies']}"
        process = subprocess.Popen([sys.executable, PYTHON, url], stdout=subprocess.DEVNULL)
        assert trades_of(service, len(simulated)) == simulated
        rows = get(service, "/rest/ext/order/history?limit=1000")
        live = [(row["side"], float(row["quantity"]), float(row["avgPrice"])) for row in reversed(rows)]
        assert live == sent
        process.terminate()
        assert process.wait(START_S_MAX) == 0
    finally:
        if process is not None:
            process.kill()
            process.wait()
        service.remove()


@pytest.mark.parametrize("transport", ["direct", "nats"])
def test_the_strategy_trades_in_its_own_process_as_in_simulation(place, simulated, transport):
    """The server is `pitlane` itself, which does not know the kind."""
    settings, broker, process = ["strategies.listen=127.0.0.1:0"], None, None
    if transport == "nats":
        broker, url = nats_server(place)
        settings = ["strategies.transport=nats", f"nats.url={url}"]
    service = TemplateService(BINARY, place, *settings)
    service.files.insert(0, "distributed")
    try:
        service.start()
        if broker is None:
            url = f"pitlane://{service.addresses['strategies']}"
        process = subprocess.Popen(
            [program(), "strategy", "--name", "DIP", "--connect", url], stdout=subprocess.DEVNULL
        )
        assert trades_of(service, len(simulated)) == simulated
        process.terminate()
        assert process.wait(START_S_MAX) == 0
    finally:
        if process is not None:
            process.kill()
        service.remove()
        if broker is not None:
            broker.kill()
            broker.wait()


def test_a_wrong_parameter_is_reported_with_file_and_line(place):
    wrong = (TEMPLATE / "dip.toml").read_text().replace('"0.50"', '"much"')
    (place / "wrong.toml").write_text(wrong)
    text = "wrong.toml:6:16: strategy.0.parameters.dip: it must be a price above zero"
    assert_reports_an_error([program(), "check", "--config", "wrong.toml"], place, text)
    (place / "two.toml").write_text(wrong.replace('["AAPL"]', '["AAPL", "MSFT"]'))
    text = "two.toml:5:1: strategy.0.securities: it trades one security"
    assert_reports_an_error([program(), "check", "--config", "two.toml"], place, text)


def test_the_program_adds_its_strategy_to_the_reference_data(place):
    output = output_of([program(), "check", "--config", "dip.toml"], place)
    assert output.endswith("the settings add the strategy DIP to the reference data\n")


def test_the_guide_has_the_files_of_the_template():
    strategy, main = blocks_of_the_guide("rust")[:2]
    assert strategy == (TEMPLATE / "src" / "buy_the_dip.rs").read_text().split("\n#[cfg(test)]")[0]
    assert main == (TEMPLATE / "src" / "main.rs").read_text()
    assert (TEMPLATE / "dip.toml").read_text() in blocks_of_the_guide("toml")


def test_the_guide_has_the_strategy_in_python():
    program = PYTHON.read_text()
    block = next(block for block in blocks_of_the_guide("python", PYTHON_GUIDE) if "class BuyTheDip" in block)
    assert f"\n{block}\n\nif __name__" in program


def test_the_strategy_in_python_says_how_it_is_called(place):
    assert_reports_an_error([sys.executable, PYTHON], place, "python buy_the_dip.py ticks.csv")


def test_the_template_is_formatted():
    files = sorted((TEMPLATE / "src").glob("*.rs"))
    output_of(["rustfmt", "--check", "--edition", "2024", "--config-path", ROOT / "rustfmt.toml", *files], ROOT)
