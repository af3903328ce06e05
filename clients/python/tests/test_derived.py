"""The client for plain threads is up to date with its source."""

import subprocess
import sys
from pathlib import Path


def test_the_sync_client_is_up_to_date():
    tool = Path(__file__).resolve().parent.parent / "tools" / "derive_sync.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
