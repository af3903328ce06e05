"""The recorder and the notebook: files of ticks, and what is done with them."""

import json
import os
import re
import sys

import pytest
from programs import EXAMPLES, REFUSED, assert_reports_an_error, cargo, output_of
from service import BINARY

RECORDER = EXAMPLES / "recorder"
NOTEBOOK = EXAMPLES / "notebook"


def record(service, file):
    """Records two seconds and returns the number of rows."""
    command = [sys.executable, RECORDER / "recorder.py", "--url", service.url, "--seconds", "2", file]
    output = output_of(command, file.parent)
    rows, securities, gaps = map(
        int, re.match(r"recorded (\d+) rows of (\d+) securities .* (\d+) gaps", output).groups()
    )
    assert rows > securities > 1 and gaps == 0
    return rows


@pytest.mark.parametrize("name", ["ticks.csv", "ticks.parquet"])
def test_a_recording_can_be_simulated(service, name, tmp_path):
    rows = record(service, tmp_path / name)
    command = [BINARY, "simulate", "--quiet", "--config", RECORDER / "backtest.toml"]
    text = output_of([*command, "--data", tmp_path / name, "--report", tmp_path / "report"], tmp_path)
    assert f", {rows} ticks" in text and "MOMENTUM (moving-average-cross)" in text
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["ticks"] == rows and report["strategies"][0]["failure"] is None


def test_the_recorder_reports_that_nothing_listens(tmp_path):
    command = [sys.executable, RECORDER / "recorder.py", "--url", f"http://{REFUSED}", "--seconds", "2", "t.csv"]
    assert_reports_an_error(command, tmp_path)


@pytest.mark.parametrize("folder", ["fix/rust", "stomp/rust"])
def test_a_rust_package_is_formatted_and_passes_its_tests_and_lints(folder):
    output_of(["cargo", "fmt", "--check", "--manifest-path", EXAMPLES / folder / "Cargo.toml"], EXAMPLES)
    cargo("clippy", folder, "--all-targets", "--", "-D", "warnings")
    cargo("test", folder)


def cells_of(path):
    return json.loads(path.read_text())["cells"]


def outputs_of(cells):
    """Returns the kinds of all outputs: tables, plots and texts."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [(output["output_type"], sorted(output.get("data", {}))) for output in outputs]


def test_the_notebook_runs_and_its_stored_outputs_are_complete(tmp_path):
    command = [sys.executable, NOTEBOOK / "execute.py", tmp_path / "backtest.ipynb"]
    output = output_of(command, tmp_path, timeout_s=180, PITLANE=os.path.abspath(BINARY))
    assert output.endswith("11 cells, 2 plots\n")
    stored, made = cells_of(NOTEBOOK / "backtest.ipynb"), cells_of(tmp_path / "backtest.ipynb")
    sources = [[(cell["cell_type"], cell["source"]) for cell in cells] for cells in (stored, made)]
    assert sources[0] == sources[1], "backtest.py has changed: run execute.py"
    assert outputs_of(stored) == outputs_of(made)
    assert "best of 16 runs" in "".join(made[-1]["outputs"][-1]["text"])


def test_the_notebook_reports_a_missing_binary(tmp_path):
    command = [sys.executable, NOTEBOOK / "execute.py", tmp_path / "backtest.ipynb"]
    assert_reports_an_error(command, tmp_path, PITLANE="/nonexistent/pitlane")
