"""Makes the notebook from `backtest.py`, runs it, and stores it with its outputs.

    pip install nbclient nbformat ipykernel matplotlib pandas
    PITLANE=../../target/sim/pitlane python execute.py [backtest.ipynb]

Cells begin with `# %%`; the lines of a cell `# %% [markdown]` are comments.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
CELL_S_MAX = 120


def cells_of(source):
    """Returns the cells of a script. Their ids are numbers, so that a new run is a small diff."""
    cells = []
    parts = re.split(r"^# %%(.*)\n", source, flags=re.MULTILINE)
    for number, (kind, text) in enumerate(zip(parts[1::2], parts[2::2])):
        if "[markdown]" in kind:
            cell = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE))
        else:
            cell = nbformat.v4.new_code_cell(text.strip())
        cell["id"] = f"cell-{number}"
        cells.append(cell)
    return cells


def notebook_of(source):
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells_of(source), metadata={"kernelspec": kernel})


def main():
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "backtest.ipynb"
    binary = shutil.which(os.environ.get("PITLANE", "pitlane"))
    if binary is None:
        sys.exit("error: there is no binary `pitlane` in the path; name it with PITLANE=/path/to/pitlane")
    # The kernel runs in another folder than the caller.
    os.environ["PITLANE"] = os.path.abspath(binary)
    notebook = notebook_of((HERE / "backtest.py").read_text())
    try:
        NotebookClient(notebook, timeout=CELL_S_MAX, record_timing=False).execute(cwd=str(target.resolve().parent))
    except CellExecutionError as error:
        sys.exit(f"error: a cell failed with {error.ename}: {error.evalue}")
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, target)
    plots = sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    print(f"{target}: {len(notebook.cells)} cells, {plots} plots")


if __name__ == "__main__":
    main()
