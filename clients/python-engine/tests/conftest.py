"""Market data for the tests: a random walk with a seed."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

START_NS = 1_793_629_800_000_000_000
"""2026-11-02T14:30:00Z."""


def walk(count: int, symbol: str = "AAPL", seed: int = 1) -> dict[str, list[Any]]:
    """Returns ticks as columns; one in three has a trade."""
    rng = random.Random(seed)
    names = ("time", "security", "bid", "bidSize", "ask", "askSize", "last", "lastSize")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    at, cents = START_NS, 23_000
    for _ in range(count):
        at += rng.randrange(1, 200_000_000)
        cents = max(10_000, cents + rng.randrange(-2, 3))
        ask = cents + rng.randrange(1, 4)
        has_trade = rng.randrange(3) == 0
        row = (
            at,
            symbol,
            cents / 100,
            100.0 * rng.randrange(1, 20),
            ask / 100,
            100.0 * rng.randrange(1, 20),
            rng.choice((cents, ask)) / 100 if has_trade else None,
            100.0 * rng.randrange(1, 5) if has_trade else None,
        )
        for name, cell in zip(names, row):
            columns[name].append(cell)
    return columns


def write(path: Path, columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values())
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return str(path)


@pytest.fixture(scope="session")
def columns() -> dict[str, list[Any]]:
    return walk(20_000)


@pytest.fixture(scope="session")
def ticks(columns: dict[str, list[Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("data") / "ticks.csv", columns)
