"""Compares the statistics of a report with those that quantstats computes from the same equity.

    compare.py BINARY

Makes half a year of prices, runs a strategy over them, and checks every figure that both have.
Prints one line for each and exits with 1 if one differs.
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import pandas as pd

warnings.simplefilter("ignore")
import quantstats as qs  # noqa: E402 (its import prints warnings of other packages)

# Largest relative difference: both compute with floats, in another order.
TOLERANCE = 1e-9
# A sample every four hours: the JSON lists at most 2,000, and all are needed here.
SETTINGS = """
[simulation]
sample_s = 14400

[[strategy]]
name = "MOMENTUM"
kind = "moving-average-cross"
securities = ["AAPL"]
start = true
cancel_on_failure = true
parameters = { fast = 5, slow = 20, bar_s = 60, qty = 400, short = true }
"""


def write_ticks(path: pathlib.Path) -> None:
    """Writes a quote and a trade a minute, six and a half hours a day, Monday to Friday."""
    rng = random.Random(11)
    level, drift = 20_000.0, 0.0
    with path.open("w") as file:
        file.write("time,security,bid,bidSize,ask,askSize,last,lastSize\n")
        for day in pd.bdate_range("2026-01-05", periods=126, tz="UTC"):
            level *= math.exp(rng.gauss(0, 0.004))
            for minute in range(390):
                drift = 0.8 * drift + rng.gauss(0, 1)
                level = max(1_000.0, level + drift + rng.gauss(0, 4))
                bid = round(level)
                at = day + pd.Timedelta(hours=14, minutes=30 + minute)
                prices = f"{bid / 100:.2f},900,{(bid + 1) / 100:.2f},900,{bid / 100:.2f},100"
                file.write(f"{at.value},AAPL,{prices}\n")


def simulate(binary: str, folder: pathlib.Path) -> dict:
    write_ticks(folder / "ticks.csv")
    (folder / "settings.toml").write_text(SETTINGS)
    command = [binary, "simulate", "--quiet", "--config", folder / "settings.toml"]
    command += ["--data", folder / "ticks.csv", "--report", folder / "report"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "report" / "report.json").read_text())["strategies"][0]


def series(points: list) -> pd.Series:
    index = pd.to_datetime([at for at, _ in points], utc=True, format="ISO8601").tz_localize(None)
    return pd.Series([float(value) for _, value in points], index=index)


def expected(result: dict) -> dict[str, float]:
    """Returns the figures of quantstats, by their names in the report."""
    daily = series(result["daily"])
    begun = pd.Timestamp(result["equity"][0][0]).tz_localize(None)
    equity = pd.concat([pd.Series([result["startEquity"]], index=[begun]), daily])
    returns = equity.pct_change().dropna()
    year = result["daysPerYear"]
    benchmark = series(result["benchmark"]["returns"])
    greeks = qs.stats.greeks(returns, benchmark, periods=year)
    return {
        "return": qs.stats.comp(returns),
        "volatility": qs.stats.volatility(returns, periods=year),
        "sharpe": qs.stats.sharpe(returns, periods=year),
        "sortino": qs.stats.sortino(returns, periods=year),
        "bestDay": qs.stats.best(returns),
        "worstDay": qs.stats.worst(returns),
        "maxDrawDown": -qs.stats.to_drawdown_series(series(result["equity"])).min(),
        "benchmark.sharpe": qs.stats.sharpe(benchmark, periods=year),
        "benchmark.volatility": qs.stats.volatility(benchmark, periods=year),
        "benchmark.beta": greeks["beta"],
        "benchmark.alpha": greeks["alpha"],
    }


def found(result: dict, name: str) -> float:
    value = result
    for key in name.split("."):
        value = value[key]
    return value


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="quantstats-") as folder:
        result = simulate(sys.argv[1], pathlib.Path(folder))
    differing = 0
    for name, other in expected(result).items():
        own = found(result, name)
        agrees = math.isclose(own, other, rel_tol=TOLERANCE)
        differing += not agrees
        print(f"{name:<22} {own:>18.12f} {other:>18.12f} {'ok' if agrees else 'DIFFERS'}")
    days = len(result["returns"])
    print(f"quantstats {qs.__version__}: {differing} figures differ, {days} daily returns")
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
