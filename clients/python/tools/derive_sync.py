"""Generates the client for plain threads from the client for asyncio.

python tools/derive_sync.py           writes src/pitlane/_sync
python tools/derive_sync.py --check   exits with 1 if src/pitlane/_sync is not up to date
"""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "pitlane"
HEADER = "# Generated from {} by tools/derive_sync.py. Change that file instead.\n"

# Patterns and their replacements, applied in this order.
REPLACEMENTS = [
    (r"asyncio\.get_running_loop\(\)\.time\(\)", "time.monotonic()"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__a(?=enter__|exit__|iter__|next__)", "__"),
    (r"\baclose\b", "close"),
    (r"\b(stream|http)\.asynchronous\b", r"\1.synchronous"),
    (
        r"The client for asyncio\. `tools/derive_sync\.py` generates the modules of `_sync` from these\.",
        "The client for plain threads.",
    ),
]


def derive(source: Path) -> str:
    text = source.read_text()
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return HEADER.format(f"_async/{source.name}") + text


def main() -> int:
    is_check = sys.argv[1:] == ["--check"]
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    stale = [
        path.name for path in (PACKAGE / "_sync").glob("*.py") if path.name not in {source.name for source in sources}
    ]
    for source in sources:
        target, text = PACKAGE / "_sync" / source.name, derive(source)
        if not target.exists() or target.read_text() != text:
            stale.append(source.name)
            if not is_check:
                target.write_text(text)
    if is_check and stale:
        print("not up to date:", *stale)
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
