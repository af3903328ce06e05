"""A first example for a running service: python quickstart.py [http://127.0.0.1:9090]"""

import sys

from pitlane import Pitlane

with Pitlane(*sys.argv[1:2]) as client:
    with client.ticks("AAPL") as ticks:
        print("market:", ticks.get(timeout_s=10))
    order = client.buy("AAPL", 5, limit=100)
    print("resting:", order.int_id, order.status, order.limit)
    order = client.modify(order, limit="100.25")
    client.cancel(order)
    print("bought:", client.buy("AAPL", 10).avg_price, "now", client.positions())
