"""Records the live market into a file that `pitlane simulate` reads: CSV, or Parquet by its name.

    pip install ../../clients/python pyarrow      # pyarrow is needed for Parquet only
    python recorder.py [--url http://127.0.0.1:9090] [--seconds 60] [--topic 'tick.*'] ticks.csv

A row has what is new in a tick: the quote, the trade, or both. Control-C ends the recording early,
and the file is complete then too.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from decimal import Decimal
from pathlib import Path

from pitlane import Gap, Pitlane, PitlaneError, Policy, Tick

COLUMNS = ["time", "security", "bid", "bidSize", "ask", "askSize", "last", "lastSize"]
# Rows that wait for a row group of Parquet: some megabytes.
ROWS_PER_GROUP = 50_000


class CsvFile:
    def __init__(self, path: Path) -> None:
        self.file = path.open("w", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(COLUMNS)

    def write(self, row: list[object]) -> None:
        self.writer.writerow(["" if cell is None else cell for cell in row])

    def close(self) -> None:
        self.file.close()


class ParquetFile:
    def __init__(self, path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        price = pyarrow.decimal128(18, 8)
        types = [pyarrow.timestamp("ns", "UTC"), pyarrow.int32(), *[price] * 6]
        self.schema = pyarrow.schema(list(zip(COLUMNS, types)))
        self.writer = pyarrow.parquet.ParquetWriter(path, self.schema)
        self.table = pyarrow.table
        self.rows: list[list[object]] = []

    def write(self, row: list[object]) -> None:
        self.rows.append(row)
        if len(self.rows) == ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        columns = [list(column) for column in zip(*self.rows)]
        if columns:
            self.writer.write_table(self.table(columns, schema=self.schema))
        self.rows.clear()

    def close(self) -> None:
        self.flush()
        self.writer.close()


class Recorder:
    def __init__(self, file: CsvFile | ParquetFile) -> None:
        self.file = file
        self.rows = 0
        self.gaps = 0
        self.previous: dict[int, Tick] = {}
        self.time = 0

    def handle(self, tick: Tick) -> None:
        before = self.previous.get(tick.security_id)
        self.previous[tick.security_id] = tick
        quote = [tick.bid, tick.bid_size, tick.ask, tick.ask_size]
        trade: list[Decimal | None] = [tick.last, tick.last_size]
        if before is not None:
            if quote == [before.bid, before.bid_size, before.ask, before.ask_size]:
                quote = [None] * 4
            # Two equal trades in a row differ in the volume.
            if tick.volume == before.volume:
                trade = [None] * 2
        if quote + trade == [None] * 6:
            return
        # Ticks of two shards may arrive out of order; a file must be in time order.
        self.time = max(self.time, tick.ts)
        self.file.write([self.time, tick.security_id, *quote, *trade])
        self.rows += 1

    def run(self, client: Pitlane, topic: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        # EVERY: the recorder wants each tick, not only the newest.
        with client.subscribe(topic, policy=Policy.EVERY) as events:
            while (left := end - time.monotonic()) > 0:
                try:
                    event = events.get(timeout_s=left)
                except (TimeoutError, KeyboardInterrupt):
                    return
                if isinstance(event, Tick):
                    self.handle(event)
                elif isinstance(event, Gap) and not event.is_over:
                    self.gaps += 1
                    print(f"ticks are missing: {event.reason}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Records the live market into a file.")
    parser.add_argument("--url", default="http://127.0.0.1:9090")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--topic", default="tick.*", help="tick.* is all securities, tick.1 is one")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    try:
        file = ParquetFile(arguments.file) if arguments.file.suffix == ".parquet" else CsvFile(arguments.file)
        recorder = Recorder(file)
        try:
            with Pitlane(arguments.url) as client:
                recorder.run(client, arguments.topic, arguments.seconds)
        finally:
            file.close()
    except (PitlaneError, OSError, ImportError) as error:
        sys.exit(f"error: {error}")
    securities = len(recorder.previous)
    print(f"recorded {recorder.rows} rows of {securities} securities into {arguments.file}, {recorder.gaps} gaps")


if __name__ == "__main__":
    main()
