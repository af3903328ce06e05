"""stomp.py against the service: python client.py CERTIFICATE PORT TLS_PORT. 0 means success."""

import json
import sys
import threading

import stomp

PATIENCE = 30


class Listener(stomp.ConnectionListener):
    def __init__(self):
        self.ticks = 0
        self.books = 0
        self.receipts = set()
        self.errors = []
        self.changed = threading.Condition()

    def note(self, act):
        with self.changed:
            act()
            self.changed.notify_all()

    def on_message(self, frame):
        kind = frame.headers["destination"].split("/")[-1].split(".")[0]
        message = json.loads(frame.body)
        assert message["type"] == kind.upper(), frame
        if kind == "book":
            for side, best in (("bids", -1), ("asks", 1)):
                prices = [level["price"] for level in message[side]]
                assert len(prices) <= 10 and prices == sorted(prices, key=lambda price: best * price), frame
            self.note(lambda: setattr(self, "books", self.books + 1))
        else:
            self.note(lambda: setattr(self, "ticks", self.ticks + 1))

    def on_receipt(self, frame):
        self.note(lambda: self.receipts.add(frame.headers["receipt-id"]))

    def on_error(self, frame):
        self.note(lambda: self.errors.append(frame))

    def wait(self, is_so, what):
        with self.changed:
            assert self.changed.wait_for(is_so, PATIENCE), what


def talk(make, port, certificate):
    connection = make([("localhost", port)])
    if certificate:
        connection.set_ssl(for_hosts=[("localhost", port)], ca_certs=certificate)
    listener = Listener()
    connection.set_listener("", listener)
    connection.connect(wait=True)
    if make is stomp.Connection10:
        connection.subscribe("/topic/tick.*", headers={"receipt": "subscribed"})
        connection.subscribe("/topic/book.*")
    else:
        connection.subscribe("/topic/tick.*", id="1", headers={"receipt": "subscribed"})
        connection.subscribe("/topic/book.*", id="2")
    listener.wait(lambda: "subscribed" in listener.receipts, "a receipt")
    # Enough messages for heart-beats of one second to be exchanged meanwhile.
    listener.wait(lambda: listener.ticks >= 300, "ticks")
    listener.wait(lambda: listener.books >= 20, "books")
    connection.disconnect(receipt="bye")
    listener.wait(lambda: "bye" in listener.receipts, "the last receipt")
    assert not listener.errors, listener.errors


def main():
    certificate, port, tls_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def beating(kind):
        return lambda hosts: kind(hosts, heartbeats=(1000, 1000))

    for make in (stomp.Connection10, beating(stomp.Connection11), beating(stomp.Connection12)):
        talk(make, port, None)
        talk(make, tls_port, certificate)


main()
