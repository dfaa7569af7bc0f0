from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_executed_and_small(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    assert path.stat().st_size < 300_000


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_executes(path):
    nbclient = pytest.importorskip("nbclient", reason="needs the extra docs")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=1400, resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
