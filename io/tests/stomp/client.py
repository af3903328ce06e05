"""stomp.py against the service: python client.py CERTIFICATE PORT TLS_PORT. Ends with 0 if all went well."""

import sys
import threading

import stomp

PATIENCE = 30


class Listener(stomp.ConnectionListener):
    def __init__(self):
        self.ticks = 0
        self.receipts = set()
        self.errors = []
        self.changed = threading.Condition()

    def note(self, act):
        with self.changed:
            act()
            self.changed.notify_all()

    def on_message(self, frame):
        assert frame.headers["destination"].startswith("/topic/tick."), frame
        assert '"type":"TICK"' in frame.body, frame
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
    else:
        connection.subscribe("/topic/tick.*", id="1", headers={"receipt": "subscribed"})
    listener.wait(lambda: "subscribed" in listener.receipts, "a receipt")
    # So many that heart-beats of a second have been exchanged meanwhile.
    listener.wait(lambda: listener.ticks >= 300, "ticks")
    connection.disconnect(receipt="bye")
    listener.wait(lambda: "bye" in listener.receipts, "the last receipt")
    assert not listener.errors, listener.errors


def main():
    certificate, port, tls_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    beating = lambda kind: lambda hosts: kind(hosts, heartbeats=(1000, 1000))
    for make in (stomp.Connection10, beating(stomp.Connection11), beating(stomp.Connection12)):
        talk(make, port, None)
        talk(make, tls_port, certificate)


main()
