"""The examples work against the real service."""

import ast
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from pitlane import Pitlane

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
README = EXAMPLES.parent / "README.md"


def output_of(name, *arguments):
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_quickstart_runs(shared):
    output = output_of("quickstart.py", shared.url)
    assert "market: Tick(" in output and "resting: py-" in output and "bought: " in output


def test_the_notebook_runs(shared, monkeypatch, capsys):
    monkeypatch.setenv("PITLANE_URL", shared.url)
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
    names, shown = {}, []
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]), f"cell {number}")
        # Like a notebook, collects the value of the last expression of a cell.
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    assert shown[0] == "RUNNING" and len(shown[1]) == 10 and shown[4] == "CANCELED"
    output = capsys.readouterr().out
    assert "FILLED" in output and "422 bad-lot quantity" in output


def test_the_market_maker_keeps_its_position_limit_and_cancels_its_quotes(new_service):
    service = new_service("feed.rate=300").start()
    output = output_of(
        "market_maker.py", "--url", service.url, "--seconds", "2", "--quantity", "5", "--position-max", "10"
    )
    quoted, final_position = re.match(r"quoted (\d+) times, holding (-?\d+),", output).groups()
    assert int(quoted) > 2 and abs(int(final_position)) <= 10
    with Pitlane(service.url) as client:
        assert client.open_orders() == []
        position, position_max = Decimal(0), Decimal(0)
        for row in reversed(client.transactions("MARKET_MAKER")):
            position += row.quantity
            position_max = max(position_max, abs(position))
        assert position_max <= 10
        sides = {order.side for order in client.order_history() if order.strategy_name == "MARKET_MAKER"}
        assert sides == {"BUY", "SELL"}


def test_every_python_block_of_the_readme_runs(shared):
    text = README.read_text().replace("http://127.0.0.1:9090", shared.url)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {"__name__": "readme"})
