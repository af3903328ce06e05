"""A strategy in Python does the same as the same strategy in Rust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pitlane
import pytest
from moving_average import MovingAverageCross

SECTION = (
    "[[strategy]]\n"
    'name = "MOMENTUM"\n'
    'kind = "moving-average-cross"\n'
    'securities = ["AAPL"]\n'
    "start = true\n"
    "cancel_on_failure = true\n"
    "parameters = {{ fast = {fast}, slow = {slow}, bar_s = {bar_s}, qty = {qty}, short = {short} }}\n"
)


@pytest.mark.parametrize(
    "parameters",
    [
        {"fast": 5, "slow": 40, "bar_s": 0, "qty": 10, "short": True},
        {"fast": 3, "slow": 20, "bar_s": 1, "qty": 7, "short": False},
    ],
)
def test_the_hash_is_that_of_the_rust_strategy(parameters: dict[str, Any], ticks: str, tmp_path: Path) -> None:
    settings = tmp_path / "momentum.toml"
    texts = {name: str(value).lower() for name, value in parameters.items()}
    settings.write_text(SECTION.format(**texts))
    rust = pitlane.backtest([], ticks, config=settings)
    python = pitlane.backtest(MovingAverageCross("AAPL", **parameters), ticks)
    assert python.failures == {}
    assert len(rust.fills) > 20
    assert python.orders.equals(rust.orders)
    assert python.fills.equals(rust.fills)
    assert python.equity.equals(rust.equity)
    assert python.hash == rust.hash


def test_another_parameter_gives_another_hash(ticks: str) -> None:
    def hash_of(slow: int) -> str:
        return pitlane.backtest(MovingAverageCross("AAPL", 5, slow, 0), ticks).hash

    assert hash_of(40) == hash_of(40)
    assert hash_of(40) != hash_of(41)


def test_exact_amounts_give_the_same_run(ticks: str) -> None:
    class Exact(MovingAverageCross):
        decimals = "exact"

    floats, exact = (kind("AAPL", 5, 40, 0) for kind in (MovingAverageCross, Exact))
    assert pitlane.backtest(exact, ticks).hash == pitlane.backtest(floats, ticks).hash
