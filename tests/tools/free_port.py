"""Ports for programs that cannot let the system choose one and then report it."""

import random
import socket

# The system gives ports above these to programs that ask it for any. Such a port would be free now
# and taken by a server of another test before it is used.
PORTS = range(10_000, 32_000)


def free_port():
    """Returns a port of loopback that no program uses."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
