"""The client for plain threads is the one that was derived."""

import subprocess
import sys
from pathlib import Path


def test_the_sync_client_is_as_derived():
    tool = Path(__file__).resolve().parent.parent / "tools" / "derive_sync.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
