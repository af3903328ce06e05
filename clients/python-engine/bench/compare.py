"""Measures back-tests: the engine alone, with strategies in Python, and NautilusTrader.

python compare.py [--ticks 1000000] [--rounds 3] [--nautilus bench/nautilus/cross.py]

Every program runs the same ticks, one after the other in each round. All times of ours include
reading the data; the time of NautilusTrader is that of `engine.run()` alone, over ticks that are
objects in memory already. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import pitlane

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from moving_average import MovingAverageCross

FAST, SLOW, QTY = 50, 1_000, 10
START_NS = 1_793_629_800_000_000_000
# Ticks per second, and times as many as NautilusTrader.
RUST_GOAL, EMPTY_GOAL, PEER_GOAL = 2_500_000, 500_000, 5.0

SECTION = (
    "[[strategy]]\n"
    'name = "MOMENTUM"\n'
    'kind = "moving-average-cross"\n'
    'securities = ["AAPL"]\n'
    "start = true\n"
    "cancel_on_failure = true\n"
    f"parameters = {{ fast = {FAST}, slow = {SLOW}, bar_s = 0, qty = {QTY}, short = true }}\n"
)


class Empty(pitlane.Strategy):
    """Receives every tick and does nothing."""

    def on_phase(self, phase: pitlane.Phase, context: pitlane.Context) -> None:
        if phase is pitlane.Phase.INIT:
            context.subscribe("AAPL")

    def on_tick(self, tick: pitlane.StrategyTick, context: pitlane.Context) -> None:
        pass


def write_ticks(path: Path, count: int) -> None:
    """Writes a random walk of one security: quotes, one in three with a trade."""
    rng = random.Random(1)
    at, cents = START_NS, 20_000
    with path.open("w") as out:
        out.write("time,security,bid,bidSize,ask,askSize,last,lastSize\n")
        for _ in range(count):
            at += 1 + rng.randrange(2_000_000)
            cents = min(max(cents + rng.randrange(5) - 2, 10_000), 40_000)
            ask = cents + 1 + rng.randrange(3)
            sizes = 100 * (1 + rng.randrange(20)), 100 * (1 + rng.randrange(20))
            out.write(f"{at},1,{cents / 100:.2f},{sizes[0]},{ask / 100:.2f},{sizes[1]},")
            if rng.randrange(3) == 0:
                out.write(f"{rng.choice((cents, ask)) / 100:.2f},{100 * (1 + rng.randrange(5))}")
            else:
                out.write(",")
            out.write("\n")


def nautilus(script: str, path: Path) -> float:
    arguments = [sys.executable, script, str(path), str(FAST), str(SLOW), str(QTY)]
    answer = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    report = json.loads(answer.splitlines()[-1])
    return float(report["ticks"]) / float(report["runS"])


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = run()
    return result.ticks / (time.perf_counter() - begin), result


def measure(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    path, settings = folder / "ticks.csv", folder / "momentum.toml"
    write_ticks(path, options.ticks)
    settings.write_text(SECTION)
    import pandas

    frame = pandas.read_csv(path)
    programs: dict[str, Callable[[], Any]] = {
        "Rust, cross, CSV": lambda: pitlane.backtest([], path, config=settings),
        "Rust, cross, frame": lambda: pitlane.backtest([], frame, config=settings),
        "Python, empty on_tick, CSV": lambda: pitlane.backtest(Empty, path),
        "Python, empty on_tick, frame": lambda: pitlane.backtest(Empty, frame),
        "Python, cross, CSV": lambda: pitlane.backtest(MovingAverageCross("AAPL", FAST, SLOW, 0, QTY, True), path),
    }
    rates: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(options.rounds):
        hashes = set()
        for name, program in programs.items():
            rate, result = timed(program)
            rates[name].append(rate)
            if "cross" in name:
                hashes.add(result.hash)
        if len(hashes) != 1:
            raise SystemExit(f"the runs differ: {hashes}")
        if options.nautilus:
            rates.setdefault("NautilusTrader, cross", []).append(nautilus(options.nautilus, path))
    return rates


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nautilus", metavar="SCRIPT", help="program that runs NautilusTrader")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(options, Path(folder))
    print(f"{options.ticks} ticks, {options.rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'ticks/s':<32} {'median':>12} {'best':>12}")
    for name, values in rates.items():
        print(f"{name:<32} {statistics.median(values):>12,.0f} {max(values):>12,.0f}")
    medians = {name: statistics.median(values) for name, values in rates.items()}
    goals = [
        ("Rust, 2.5 million ticks/s", medians["Rust, cross, frame"] / RUST_GOAL),
        ("empty on_tick, 500,000 ticks/s", medians["Python, empty on_tick, CSV"] / EMPTY_GOAL),
    ]
    if options.nautilus:
        times = medians["Python, cross, CSV"] / medians["NautilusTrader, cross"]
        print(f"Python, cross: {times:.1f} times NautilusTrader")
        goals.append((f"{PEER_GOAL:.0f} times NautilusTrader", times / PEER_GOAL))
    for goal, share in goals:
        print(f"{'met' if share >= 1 else 'MISSED':<8} {goal} ({share:.2f} of it)")
    return 0 if all(share >= 1 for _, share in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
