# %% [markdown]
# # A back-test, from prices to parameters
#
# This notebook makes a day of prices, runs a strategy over them with `pitlane simulate`, plots what
# it did, and compares parameters. `execute.py` makes the notebook from `backtest.py` and runs it.
# It needs pandas and matplotlib, and the binary `pitlane` in the path or named by the environment
# variable `PITLANE`.

# %%
import json
import os
import random
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.dates import DateFormatter

PITLANE = os.environ.get("PITLANE", "pitlane")
# Removed when the kernel ends.
temporary = tempfile.TemporaryDirectory(prefix="backtest-")
folder = Path(temporary.name)

# %% [markdown]
# ## Prices
#
# One quote and one trade per second from 09:30 to 16:00 in New York: a random walk with a slowly
# changing drift, always the same because it has a seed. Bars are made of trades, so the file needs
# them. The recorder (`examples/recorder`) writes files with the same columns.

# %%
rng = random.Random(7)
start = pd.Timestamp("2026-11-02T14:30:00Z")
rows, level, drift = [], 23_250, 0.0
for second in range(6 * 3600 + 1800):
    drift = 0.998 * drift + rng.gauss(0, 0.005)
    level = max(1_000, level + drift + rng.gauss(0, 1))
    bid = round(level)
    ask = bid + rng.choice([1, 1, 1, 2])
    quote = [bid / 100, rng.randrange(50, 500), ask / 100, rng.randrange(50, 500)]
    trade = [rng.choice([bid, ask]) / 100, rng.randrange(1, 100)]
    rows.append([(start + pd.Timedelta(seconds=second)).value, "AAPL", *quote, *trade])
columns = ["time", "security", "bid", "bidSize", "ask", "askSize", "last", "lastSize"]
ticks = pd.DataFrame(rows, columns=columns)
ticks.to_csv(folder / "ticks.csv", index=False)
ticks.head()

# %% [markdown]
# ## One run
#
# The settings are a small file. The report holds figures, the equity over time, and each trade. The
# hash is the same for the same data, settings and seed.


# %%
def simulate(fast: int, slow: int) -> dict:
    """Runs the moving-average cross over the prices and returns the report."""
    settings = folder / "settings.toml"
    settings.write_text(
        f"""
[[strategy]]
name = "MOMENTUM"
kind = "moving-average-cross"
securities = ["AAPL"]
start = true
cancel_on_failure = true
parameters = {{ fast = {fast}, slow = {slow}, bar_s = 10, qty = 100, short = true }}
"""
    )
    command = [PITLANE, "simulate", "--quiet", "--config", settings, "--data", folder / "ticks.csv"]
    done = subprocess.run([*command, "--report", folder / "report"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads((folder / "report" / "report.json").read_text())


report = simulate(fast=30, slow=120)
strategy = report["strategies"][0]
keys = ["startEquity", "endEquity", "return", "maxDrawDown", "orders", "fills"]
keys += ["winningTrades", "losingTrades", "commission"]
pd.Series({key: strategy[key] for key in keys}, name=strategy["name"]).to_frame()

# %% [markdown]
# ## What it did
#
# Prices with its trades above, equity below.

# %%
times = pd.to_datetime(ticks["time"], utc=True)
mid = (ticks["bid"] + ticks["ask"]) / 2
# Amounts of trades are texts with all their digits; a plot needs floats.
trades = pd.DataFrame(report["trades"]).astype({"quantity": float, "price": float})
trades["time"] = pd.to_datetime(trades["time"], utc=True, format="ISO8601")
bought, sold = trades[trades["quantity"] > 0], trades[trades["quantity"] < 0]
equity = pd.DataFrame(strategy["equity"], columns=["time", "equity"])
equity["time"] = pd.to_datetime(equity["time"], utc=True, format="ISO8601")

figure, (prices, value) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, height_ratios=[2, 1])
prices.plot(times, mid, color="0.6", linewidth=0.7, label="mid price")
prices.plot(bought["time"], bought["price"], "^", color="tab:green", markersize=6, label="bought")
prices.plot(sold["time"], sold["price"], "v", color="tab:red", markersize=6, label="sold")
prices.set_ylabel("AAPL, USD")
prices.legend(loc="best")
gain = equity["equity"] - strategy["startEquity"]
value.plot(equity["time"], gain, color="tab:blue", linewidth=1)
value.axhline(0, color="0.8", linewidth=0.7)
value.set_ylabel("profit, USD")
value.set_xlabel("2026-11-02, UTC")
value.xaxis.set_major_formatter(DateFormatter("%H:%M"))
figure.tight_layout()

# %% [markdown]
# ## Parameters
#
# Sixteen runs. Prices without memory would give no pattern; here the drift lasts for minutes, and a
# slow average of twenty minutes does best. Choosing the best cell of such a table on the same data
# that made it is over-fitting: try the choice on other days.

# %%
fasts, slows = [5, 15, 30, 60], [90, 120, 180, 300]
profit = pd.DataFrame(index=fasts, columns=slows, dtype=float)
for fast in fasts:
    for slow in slows:
        result = simulate(fast, slow)["strategies"][0]
        profit.loc[fast, slow] = result["endEquity"] - result["startEquity"]

figure, axes = plt.subplots(figsize=(6, 3.6))
limit = profit.abs().to_numpy().max()
image = axes.imshow(profit, cmap="RdYlGn", vmin=-limit, vmax=limit, aspect="auto")
axes.set_xticks(range(len(slows)), slows)
axes.set_yticks(range(len(fasts)), fasts)
axes.set_xlabel("bars of the slow average")
axes.set_ylabel("bars of the fast average")
for row, fast in enumerate(fasts):
    for column, slow in enumerate(slows):
        axes.text(column, row, f"{profit.loc[fast, slow]:.0f}", ha="center", va="center")
figure.colorbar(image, label="profit, USD")
figure.tight_layout()

# %%
runs = profit.stack()
fast, slow = runs.idxmax()
print(f"best of {runs.size} runs: fast {fast}, slow {slow}, profit {runs.max():.2f} USD")
