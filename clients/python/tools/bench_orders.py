"""Measures the CPU time that the client spends on an order, against the real binary.

python tools/bench_orders.py [--binary PATH] [--orders 10000] [--profile]

Starts a service on free loopback ports, submits limit orders that do not fill, cancels them, and
prints the CPU time of this process (user and system, all threads) and the elapsed time per call.
The time of the service is not included.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import importlib
import pstats
import sys
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from pitlane import AsyncPitlane, LimitOrder, Pitlane, Side

# The price of the feed is far above, so the orders rest in the book.
PRICE = "100.25"
# Requests at the same time with asyncio.
CONCURRENCY = 32


def measure(name: str, count: int, work: Callable[[], None]) -> None:
    cpu, elapsed = time.process_time(), time.perf_counter()
    for _ in range(count):
        work()
    report(name, count, cpu, elapsed)


def report(name: str, count: int, cpu_before: float, before: float) -> None:
    cpu, elapsed = time.process_time() - cpu_before, time.perf_counter() - before
    per_call = f"{cpu / count * 1e3:.3f} ms CPU, {elapsed / count * 1e3:.3f} ms elapsed"
    print(f"{name:<32} {count:>6} calls: {per_call} per call")


def with_threads(url: str, count: int) -> None:
    with Pitlane(url) as client:
        client.accounts()
        ids: list[str] = []
        new = LimitOrder("AAPL", Side.BUY, 1, PRICE)
        measure("Pitlane.buy", count, lambda: ids.append(client.buy(1, 1, limit=PRICE).int_id))
        measure("Pitlane.send, by symbol", count, lambda: ids.append(client.send(new)))
        measure("Pitlane.cancel", 2 * count, lambda: client.cancel(ids.pop()))


async def with_asyncio(url: str, count: int) -> None:
    async with AsyncPitlane(url) as client:
        await client.accounts()
        ids: list[str] = []

        async def submit(number: int) -> None:
            for _ in range(number):
                ids.append((await client.buy(1, 1, limit=PRICE)).int_id)

        for workers in (1, CONCURRENCY):
            cpu, elapsed = time.process_time(), time.perf_counter()
            await asyncio.gather(*(submit(count // workers) for _ in range(workers)))
            report(f"AsyncPitlane.buy, {workers} at a time", count // workers * workers, cpu, elapsed)
        for int_id in ids:
            await client.cancel(int_id)


def main() -> None:
    # A helper of the tests, which starts the binary.
    service: Any = importlib.import_module("service")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=service.BINARY, help="the service (default: target/sim/pitlane)")
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true", help="print where the time goes instead")
    arguments = parser.parse_args()
    service.BINARY = arguments.binary
    running = service.Service("risk.strategies.max_open_orders=0").start()
    try:
        if arguments.profile:
            with cProfile.Profile() as profile:
                asyncio.run(with_asyncio(running.url, arguments.orders))
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            return
        with_threads(running.url, arguments.orders)
        asyncio.run(with_asyncio(running.url, arguments.orders))
    finally:
        running.remove()


if __name__ == "__main__":
    main()
