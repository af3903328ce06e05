"""Reads market data and reference data with simplefix, an independent codec, and checks the bytes.

Each message is decoded, encoded again by simplefix and compared: BodyLength, CheckSum and the order
of the fields must come out the same. Groups must have as many members as they say.
"""

import socket
import sys
import time

import simplefix

GROUPS = {b"W": (268, 269), b"X": (268, 279), b"y": (146, 55)}


class Client:
    def __init__(self, port: int) -> None:
        self.link = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.parser = simplefix.FixParser()
        self.number = 0
        self.input = b""

    def send(self, kind: str, *fields: tuple[int, str]) -> None:
        self.number += 1
        message = simplefix.FixMessage()
        message.append_pair(8, "FIX.4.4")
        message.append_pair(35, kind)
        message.append_pair(49, "CLIENT1")
        message.append_pair(56, "PITLANE")
        message.append_pair(34, self.number)
        message.append_utc_timestamp(52, time.time(), header=False)
        for tag, value in fields:
            message.append_pair(tag, value)
        self.link.sendall(message.encode())

    def receive(self, kind: bytes) -> simplefix.FixMessage:
        """Returns the next message of a kind; every message on the way is checked."""
        while True:
            message = self.next()
            if message.get(35) == kind:
                return message

    def next(self) -> simplefix.FixMessage:
        while b"\x0110=" not in self.input or not self.input.endswith(b"\x01"):
            data = self.link.recv(65_536)
            assert data, "the connection ended"
            self.input += data
        end = self.input.index(b"\x0110=") + 8
        raw, self.input = self.input[:end], self.input[end:]
        self.parser.append_buffer(raw)
        message = self.parser.get_message()
        assert message is not None, raw
        assert message.encode() == raw, f"{message.encode()!r} is not {raw!r}"
        check_group(message)
        return message


def check_group(message: simplefix.FixMessage) -> None:
    kind = message.get(35)
    if kind not in GROUPS:
        return
    count, opens = GROUPS[kind]
    tags = [int(tag) for tag, _ in message.pairs]
    assert count in tags, message
    assert int(message.get(count)) == tags.count(opens), message
    if opens in tags:
        assert tags.index(opens) == tags.index(count) + 1, "the first member follows its count"


def request(identity: str, depth: int, kind: int, *symbols: str) -> list[tuple[int, str]]:
    fields = [(262, identity), (263, "1"), (264, str(depth)), (265, str(kind)), (267, "3")]
    fields += [(269, "0"), (269, "1"), (269, "2"), (146, str(len(symbols)))]
    return fields + [(55, symbol) for symbol in symbols]


def main() -> None:
    client = Client(int(sys.argv[1]))
    client.send("A", (98, "0"), (108, "30"), (141, "Y"))
    client.receive(b"A")
    client.send("V", *request("top", 1, 1, "AAPL", "MSFT"))
    client.send("V", *request("book", 10, 1, "NVDA"))
    for _ in range(3):
        snapshot = client.receive(b"W")
        sides = [value for tag, value in snapshot.pairs if tag == b"269"]
        assert b"0" in sides and b"1" in sides, snapshot
    for _ in range(50):
        client.receive(b"X")
    client.send("V", *request("bad", 11, 1, "AAPL"))
    assert client.receive(b"Y").get(281) == b"5"
    client.send("x", (320, "all"), (559, "4"))
    while client.receive(b"y").get(893) != b"Y":
        pass
    client.send("c", (320, "one"), (321, "0"), (55, "AAPL"))
    assert client.receive(b"d").get(323) == b"1"
    client.send("5")
    client.receive(b"5")


if __name__ == "__main__":
    main()
