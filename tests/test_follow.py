"""scripts/follow.py: an argument is followed through calls, renames, attributes and what functions make of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import follow

FILES = {
    "__init__.py": "",
    "io.py": "def names(path): ...\ndef opened(name) -> Path: ...\n",
    "data.py": "from opencse import io\nfrom opencse.io import names\n"
    "def prepare(rows) -> Path:\n    return _mix(names(rows), rows)\n"
    "def _mix(columns, rows) -> Path: ...\n",
    "run.py": "from opencse import io\nfrom opencse.data import prepare\n"
    "def run(corpus, other):\n    inputs = Inputs(corpus)\n    prepare(other)\n"
    "    rows = prepare(io.opened(inputs.corpus))\n    io.names(rows)\n",
}


def test_stops_and_climbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "src" / "opencse"
    package.mkdir(parents=True)
    for name, text in FILES.items():
        (package / name).write_text(text, encoding="utf-8")
    follow.main("opencse.run:run:corpus", tmp_path)
    *route, total = capsys.readouterr().out.splitlines()
    assert [line.split()[-1].removeprefix("opencse.") for line in route] == ["run", "io", "data", "io", "data", "io"]
    assert [number for number, line in enumerate(route, 1) if " up " in line] == [3, 5]
    assert total == "6 stops in 3 files, 6 between packages, 2 climbs"
