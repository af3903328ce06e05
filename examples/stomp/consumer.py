"""A STOMP consumer with stomp.py: prints ticks and order changes for some seconds.

    pip install stomp.py
    python consumer.py [--address 127.0.0.1:61613] [--seconds 10] [TOPIC ...]

Without topics it subscribes to `tick.*` and `pitlane.>` (the status changes of all orders).
"""

import argparse
import json
import sys
import threading
from decimal import Decimal

import stomp


class Printer(stomp.ConnectionListener):
    def __init__(self):
        self.count = 0
        self.problem = None
        self.ended = threading.Event()

    def on_message(self, frame):
        # Decimals, because prices are exact.
        event = json.loads(frame.body, parse_float=Decimal)
        self.count += 1
        topic = frame.headers["destination"].removeprefix("/topic/")
        if event["type"] == "TICK":
            print(f"{topic} {event['symbol']} bid {event.get('bid')} ask {event.get('ask')} last {event.get('last')}")
        elif event["type"] == "ORDER_STATUS":
            print(f"{topic} {event['side']} {event['quantity']} {event['symbol']} {event['status']}")
        else:
            print(topic, frame.body)

    def on_error(self, frame):
        # An ERROR frame is the last one: the broker then closes the connection.
        self.problem = frame.headers.get("message", frame.body)
        self.ended.set()

    def on_disconnected(self):
        self.ended.set()


def main():
    parser = argparse.ArgumentParser(description="Prints events of the platform.")
    parser.add_argument("--address", default="127.0.0.1:61613", help="host:port of STOMP over TCP")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("topics", nargs="*", default=["tick.*", "pitlane.>"], metavar="TOPIC")
    arguments = parser.parse_args()
    host, _, port = arguments.address.rpartition(":")
    printer = Printer()
    connection = stomp.Connection12([(host, int(port))], heartbeats=(10_000, 10_000), reconnect_attempts_max=1)
    connection.set_listener("printer", printer)
    try:
        connection.connect(wait=True)
    except stomp.exception.ConnectFailedException:
        sys.exit(f"error: no STOMP broker answers at {arguments.address}")
    for number, topic in enumerate(arguments.topics):
        connection.subscribe(f"/topic/{topic}", id=str(number))
    if printer.ended.wait(arguments.seconds):
        sys.exit(f"error: {printer.problem or 'the broker closed the connection'}")
    connection.disconnect()
    # Messages arrive on a thread of stomp.py until the broker's receipt for the DISCONNECT.
    printer.ended.wait(10)
    print(printer.count, "events")


if __name__ == "__main__":
    main()
