"""Back-tests without the native engine."""

import sys

import pitlane
import pytest


def test_a_missing_engine_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    # An import of a module that is None fails as if it were not installed.
    monkeypatch.setitem(sys.modules, "pitlane_engine", None)
    with pytest.raises(ImportError, match="pip install pitlane-engine"):
        pitlane.backtest(pitlane.Strategy, "ticks.csv")
