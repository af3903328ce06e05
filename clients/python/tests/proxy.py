"""A way to the service that breaks: a TCP proxy that cuts connections at places which a seed picks."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading

# A few times what one order and its answer take, so that on most connections some pass before one does not.
BYTES_MAX = 3000


class Proxy:
    """Each connection is cut after so many bytes in either direction. `calm()` lets everything pass from then on."""

    def __init__(self, target: str, seed: int) -> None:
        host, port = target.split(":")
        self._target = (host, int(port))
        self._chance = random.Random(seed)
        self._is_calm = self._is_closed = False
        self._may_pass = threading.Event()
        self._may_pass.set()
        self.cuts = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def calm(self) -> None:
        self._is_calm = True

    def stall(self) -> None:
        """Nothing passes from now on, and nothing is closed: as when a cable is pulled."""
        self._may_pass.clear()

    def go_on(self) -> None:
        self._may_pass.set()

    def cut_all(self) -> None:
        """Every connection that is open now."""
        for end in list(self._open):
            _reset(end)

    def close(self) -> None:
        self._is_closed = True
        self.go_on()
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                # The service is away: nobody is there.
                if not self._is_closed:
                    near.close()
                continue
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            budget = None if self._is_calm else [self._chance.randrange(BYTES_MAX) for _ in range(2)]
            threading.Thread(target=self._carry, args=(near, far, budget), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket, budget: list[int] | None) -> None:
        self._open |= {near, far}
        try:
            while True:
                for end in select.select([near, far], [], [])[0]:
                    other, which = (far, 0) if end is near else (near, 1)
                    self._may_pass.wait()
                    octets = end.recv(65536)
                    if not octets:
                        return
                    if budget is not None:
                        octets, whole = octets[: budget[which]], len(octets)
                        budget[which] -= whole
                    other.sendall(octets)
                    if budget is not None and budget[which] < 0:
                        self.cuts += 1
                        return
        except (OSError, ValueError):
            pass
        finally:
            self._open -= {near, far}
            # What was passed on to the service arrives; the client sees an end, or a reset.
            far.close()
            _reset(near) if self._chance.randrange(2) else near.close()


def _reset(end: socket.socket) -> None:
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
