"""Makes the Parquet files in this folder: pip install pandas pyarrow polars, then python make.py.

The libraries use their defaults: pandas writes snappy with pyarrow, polars writes zstd.
"""

import pandas
import polars

ROWS = [
    # time, security, bid, bidSize, ask, askSize, last, lastSize
    (1_793_629_800_000_000_000, "AAPL", 232.51, 100, 232.53, 200, None, None),
    (1_793_629_800_250_000_000, "MSFT", None, None, None, None, 415.1, 7),
    (1_793_629_801_000_000_000, "AAPL", 232.5, 300, 232.52, 100, 232.505, 12.5),
]
NAMES = ["time", "security", "bid", "bidSize", "ask", "askSize", "last", "lastSize"]

ticks = pandas.DataFrame(ROWS, columns=NAMES)
ticks["time"] = pandas.to_datetime(ticks["time"], unit="ns", utc=True)
ticks.to_parquet("pandas.parquet")

ticks = polars.DataFrame(ROWS, schema=NAMES, orient="row")
ticks = ticks.with_columns(polars.from_epoch("time", time_unit="ns"), polars.col("security").cast(polars.Categorical))
ticks.write_parquet("polars.parquet")

bars = pandas.DataFrame(
    [
        (1_793_629_800_000_000_000, 1, 10.0, 12.0, 9.0, 11.0, 4000),
        (1_793_629_860_000_000_000, 1, 11.0, 11.5, 10.5, 11.25, 2000),
    ],
    columns=["time", "security", "open", "high", "low", "close", "volume"],
)
bars["time"] = pandas.to_datetime(bars["time"], unit="ns").astype("datetime64[ms]")
bars.set_index("time").to_parquet("bars.parquet")
