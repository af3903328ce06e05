"""The real binary on free loopback ports, with its own data folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("BINARY") or str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "sim" / "pitlane")
START_S_MAX = 30
END_S_MAX = 10


class Service:
    def __init__(self, *settings: str, config: str = "") -> None:
        self.settings = list(settings)
        self.folder = Path(tempfile.mkdtemp(prefix="pitlane-py-"))
        # The text of a file of settings, for tables that an argument cannot set.
        self.config = config
        self.addresses: dict[str, str] = {}
        self.process: subprocess.Popen[str] | None = None
        self.binary = BINARY
        self.files: list[str] = []

    @property
    def url(self) -> str:
        return f"http://{self.addresses['http']}"

    @property
    def secure_url(self) -> str:
        return f"https://{self.addresses['https']}"

    @property
    def certificate(self) -> str:
        return str(self.folder / "self-signed.pem")

    def start(self) -> Service:
        """Starts the service. A restart uses the same addresses, as after a crash."""
        listen = {"http": "http", "https": "https", "stomp": "stomp", "stomp+tls": "stomp.tls_listen"}
        keys = {name: key if "." in key else f"{key}.listen" for name, key in listen.items()}
        sets = [f"{key}={self.addresses.get(name, '127.0.0.1:0')}" for name, key in keys.items()]
        # Small journals, because no test runs long.
        sets += ["journal.segment_bytes=1_048_576", "journal.reserve_segments=2"]
        # No limits on rate, size and price: tests are fast, and send orders before the first price.
        limits = ["max_orders_per_s", "max_order_qty", "max_order_value", "price_collar_pct", "max_position"]
        sets += [f"risk.strategies.{limit}=0" for limit in limits]
        sets += ["fix.listen=", "log.level=warn", *self.settings]
        command = [self.binary, "serve", "--quiet", "--data", str(self.folder)]
        if self.config:
            (self.folder / "settings.toml").write_text(self.config)
            command += ["--config", str(self.folder / "settings.toml")]
        for file in self.files:
            command += ["--config", file]
        for setting in sets:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        late = threading.Timer(START_S_MAX, self.process.kill)
        late.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        late.cancel()
        assert line.startswith("ready"), f"the service exited before it was ready: {line!r}"
        self.addresses = dict(re.findall(r"([a-z+]+)=(127\.0\.0\.1:\d+)", line))
        threading.Thread(target=_discard_output, args=(self.process.stdout,), daemon=True).start()
        return self

    def user(self, name: str, role: str, password: str, strategies: str = "*") -> Service:
        """Creates a user; call it before the start."""
        file = str(self.folder / "users")
        command = [BINARY, "user", "add", name, "--role", role, "--strategies", strategies, "--file", file]
        subprocess.run(command, input=f"{password}\n", text=True, check=True, stdout=subprocess.DEVNULL)
        self.settings += ["auth.mode=required", f"auth.users_file={file}"]
        return self

    def token(self, name: str, role: str, strategies: str = "*") -> str:
        """Creates a token; call it before the start."""
        file = str(self.folder / "tokens")
        command = [BINARY, "token", "create", name, "--role", role, "--strategies", strategies, "--file", file]
        done = subprocess.run(command, text=True, check=True, capture_output=True)
        self.settings += ["auth.mode=required", f"auth.tokens_file={file}"]
        return done.stdout.split()[-1]

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(END_S_MAX)

    def remove(self) -> None:
        if self.process is not None:
            self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _discard_output(lines: IO[str]) -> None:
    """Reads the remaining output, so that the pipe never fills."""
    with lines:
        for _ in lines:
            pass
