"""Derives the client for plain threads from the one for asyncio: the same calls, without the waiting words.

python tools/derive_sync.py           writes src/pitlane/_sync
python tools/derive_sync.py --check   says whether it is as derived
"""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "pitlane"
MARK = "# Derived from {} by tools/derive_sync.py: change that one.\n"

# In this order; a word is replaced where it stands alone.
WORDS = [
    (r"asyncio\.get_running_loop\(\)\.time\(\)", "time.monotonic()"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__a(?=enter__|exit__|iter__|next__)", "__"),
    (r"\baclose\b", "close"),
    (r"\bstream\.asynchronous\b", "stream.synchronous"),
    (
        r"The client for asyncio\. What is below `_sync` is derived from here by `tools/derive_sync\.py`\.",
        "The client for plain threads.",
    ),
]


def derived(source: Path) -> str:
    text = source.read_text()
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return MARK.format(f"_async/{source.name}") + text


def main() -> int:
    is_check = sys.argv[1:] == ["--check"]
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    stale = [
        path.name for path in (PACKAGE / "_sync").glob("*.py") if path.name not in {source.name for source in sources}
    ]
    for source in sources:
        target, text = PACKAGE / "_sync" / source.name, derived(source)
        if not target.exists() or target.read_text() != text:
            stale.append(source.name)
            if not is_check:
                target.write_text(text)
    if is_check and stale:
        print("not as derived:", *stale)
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
