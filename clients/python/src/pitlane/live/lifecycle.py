"""The lifecycle of a strategy, the same as in the service.

```text
INIT ─► PREFEED ─► START ─► RUNNING ─► STOP ─► EXIT
  └────────┴─────────┴── fails ────────▲│       │
  ▲                                     │       │
  └──────────── begins again ───────────┴───────┘
```
"""

from __future__ import annotations

from ..enums import Phase

PHASES = tuple(Phase)
_STOP = PHASES.index(Phase.STOP)


def path(before: Phase, after: Phase) -> list[Phase] | None:
    """Returns the steps to a phase; None if there is no path.

    A running strategy is stopped before it starts again.
    """
    at, to = PHASES.index(before), PHASES.index(after)
    if at == to:
        return []
    if at < _STOP and to >= _STOP:
        return list(PHASES[_STOP : to + 1])
    if at >= _STOP and to < _STOP:
        return list(PHASES[: to + 1])
    return list(PHASES[at + 1 : to + 1]) if at < to else None
