"""The life of an order with the Python client: submitted, modified, cancelled, refused, filled.

    pip install ../../clients/python
    python orders.py [http://127.0.0.1:9090]

The client's README lists all calls; `Pitlane(url, token=...)` logs in.
"""

from __future__ import annotations

import sys

from pitlane import Gap, Order, OrderUpdate, Pitlane, PitlaneError, Refused

PATIENCE_S = 10


def show(what: str, order: Order) -> None:
    filled = f"{order.filled_quantity} of {order.quantity}"
    print(f"{what}: {order.int_id} {order.side} {order.symbol} {order.status} filled {filled}")


def rest_modify_and_cancel(client: Pitlane, security_id: int) -> None:
    order = client.buy(security_id, 5, limit="200.25")
    show("resting", order)
    order = client.modify(order, quantity=10, limit="200.5")
    show("modified", order)
    client.cancel(order)
    show("cancelled", client.order(order.int_id))


def try_half_a_share(client: Pitlane, security_id: int) -> None:
    try:
        client.buy(security_id, "0.5")
    except Refused as problem:
        print(f"refused: {problem.reason}: {problem.message}")
    else:
        raise SystemExit("error: half a share was accepted")


def buy_at_market(client: Pitlane, security_id: int) -> None:
    # Subscribed before the order is sent, so that no change is missed.
    with client.orders() as updates:
        order = client.buy(security_id, 3)
        while order.is_open:
            update = updates.get(timeout_s=PATIENCE_S)
            if isinstance(update, Gap):
                print("events are missing:", update.reason)
            elif isinstance(update, OrderUpdate) and update.int_id == order.int_id:
                print(f"update: {update.int_id} {update.status} filled {update.filled_quantity}")
            order = client.order(order.int_id)
    show(f"bought at {order.avg_price}", order)


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9090"
    try:
        with Pitlane(url) as client:
            apple = client.search("AAPL type:STOCK")[0]
            rest_modify_and_cancel(client, apple.id)
            try_half_a_share(client, apple.id)
            buy_at_market(client, apple.id)
            for position in client.positions():
                print(f"position: {position.quantity} {position.symbol} at {position.avg_price}")
    except (PitlaneError, TimeoutError) as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
