"""A TCP proxy that cuts connections at random places. A seed makes them repeatable."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading

# A few times the size of an order and its response, so that most connections carry some orders
# before the cut.
BYTES_MAX = 3000


class Proxy:
    """Cuts each connection after a random number of bytes in either direction.

    `stop_cutting()` forwards everything on new connections.
    """

    def __init__(self, target: str, seed: int) -> None:
        host, port = target.split(":")
        self._target = (host, int(port))
        self._rng = random.Random(seed)
        self._cuts_stopped = self._is_closed = False
        self._may_forward = threading.Event()
        self._may_forward.set()
        self.cuts = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop_cutting(self) -> None:
        self._cuts_stopped = True

    def stall(self) -> None:
        """Forwards nothing and closes nothing from now on, like a pulled cable."""
        self._may_forward.clear()

    def resume(self) -> None:
        self._may_forward.set()

    def cut_all(self) -> None:
        """Resets every open connection."""
        for end in list(self._open):
            _reset(end)

    def close(self) -> None:
        self._is_closed = True
        self.resume()
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                # The service does not run.
                if not self._is_closed:
                    near.close()
                continue
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            budget = None if self._cuts_stopped else [self._rng.randrange(BYTES_MAX) for _ in range(2)]
            threading.Thread(target=self._forward, args=(near, far, budget), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket, budget: list[int] | None) -> None:
        self._open |= {near, far}
        try:
            while True:
                for end in select.select([near, far], [], [])[0]:
                    other, which = (far, 0) if end is near else (near, 1)
                    self._may_forward.wait()
                    data = end.recv(65536)
                    if not data:
                        return
                    if budget is not None:
                        data, whole = data[: budget[which]], len(data)
                        budget[which] -= whole
                    other.sendall(data)
                    if budget is not None and budget[which] < 0:
                        self.cuts += 1
                        return
        except (OSError, ValueError):
            pass
        finally:
            self._open -= {near, far}
            # The service receives the forwarded data; the client sees an end or a reset.
            far.close()
            _reset(near) if self._rng.randrange(2) else near.close()


def _reset(end: socket.socket) -> None:
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
