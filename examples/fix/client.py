"""A FIX client without a FIX engine: the codec of simplefix, a socket, and the session by hand.

    pip install simplefix
    python client.py [client.cfg]

It logs on, rests a limit order, replaces it, cancels it, buys at market, and logs out. It prints
each report. The settings are in the format of QuickFIX.
"""

import configparser
import socket
import sys
import time
from datetime import datetime, timezone

import simplefix

PATIENCE_S = 10
STATUS = {
    "0": "NEW", "1": "PARTIALLY_FILLED", "2": "FILLED", "4": "CANCELED", "6": "PENDING_CANCEL",
    "8": "REJECTED", "A": "PENDING_NEW", "E": "PENDING_REPLACE",
}  # fmt: skip


class FixError(Exception):
    """The session ended, or the service refused a message."""


class Session:
    def __init__(self, settings):
        self.settings = settings
        address = (settings["SocketConnectHost"], int(settings["SocketConnectPort"]))
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.parser = simplefix.FixParser()
        self.next_number = 1

    def send(self, kind, *fields):
        """Sends a message: header, then `fields` as pairs of tag and value, then the trailer."""
        message = simplefix.FixMessage()
        message.append_pair(8, self.settings["BeginString"], header=True)
        message.append_pair(35, kind, header=True)
        message.append_pair(49, self.settings["SenderCompID"], header=True)
        message.append_pair(56, self.settings["TargetCompID"], header=True)
        message.append_pair(34, self.next_number, header=True)
        message.append_utc_timestamp(52, datetime.now(timezone.utc), header=True)
        for tag, value in fields:
            message.append_pair(tag, value)
        self.socket.sendall(message.encode())
        self.next_number += 1

    def receive(self):
        """Returns the next message as a dict of texts. It answers test requests itself."""
        while True:
            message = self.parser.get_message()
            if message is None:
                data = self.socket.recv(65536)
                if not data:
                    raise FixError("the service closed the connection: are the CompIDs known and free?")
                self.parser.append_buffer(data)
                continue
            fields = {int(tag): value.decode() for tag, value in message.pairs}
            if fields[35] == "1":
                self.send("0", (112, fields[112]))
            elif fields[35] == "3":
                raise FixError(f"the service rejected a message: {fields.get(58)}")
            elif fields[35] != "0":
                return fields

    def log_on(self):
        self.send("A", (98, 0), (108, self.settings["HeartBtInt"]), (141, self.settings["ResetOnLogon"]))
        answer = self.receive()
        if answer[35] != "A":
            raise FixError(f"the Logon was refused: {answer.get(58)}")
        print("logged on as", self.settings["SenderCompID"])

    def wait_for(self, order_id, status):
        """Prints reports until the order has the status. Any other answer is an error."""
        while True:
            report = self.receive()
            if report[35] != "8":
                raise FixError(f"the service answered {report[35]}: {report.get(58)}")
            reported = STATUS.get(report[39], report[39])
            print(f"{report[11]} {reported} filled {report[14]} of {report[38]} at {report[6]} {report.get(58, '')}")
            if report[11] == order_id and reported == "REJECTED":
                raise FixError(f"{order_id} was rejected")
            if report[11] == order_id and reported == status:
                return

    def log_out(self):
        self.send("5")
        while self.receive()[35] != "5":
            pass
        self.socket.close()
        print("logged out")


def trade(session):
    # An id may be used once a day, so it begins with the time.
    ids = time.time_ns()
    first, second, third, fourth = (f"{ids}-{number}" for number in range(1, 5))
    now = datetime.now(timezone.utc).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]
    terms = [(55, "AAPL"), (54, 1), (60, now)]
    session.send("D", (11, first), *terms, (38, 5), (40, 2), (44, "200.25"))
    session.wait_for(first, "NEW")
    session.send("G", (11, second), (41, first), *terms, (38, 10), (40, 2), (44, "200.5"))
    session.wait_for(second, "NEW")
    session.send("F", (11, third), (41, second), *terms)
    session.wait_for(third, "CANCELED")
    session.send("D", (11, fourth), *terms, (38, 3), (40, 1))
    session.wait_for(fourth, "FILLED")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "client.cfg"
    # QuickFIX writes `Key=Value` with case; [DEFAULT] gives every session its defaults.
    config = configparser.ConfigParser(interpolation=None)
    config.optionxform = str
    try:
        if not config.read(path):
            raise FixError(f"there is no file {path}")
        session = Session(config["SESSION"])
        session.log_on()
        trade(session)
        session.log_out()
    except (FixError, OSError, KeyError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
