"""`scripts/follow.py` counts calls into other files, and as climbs only those up to a package further up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from follow import Stop, walk

MODULES = {
    "top.command": """
from opencse.low.read import check, fill
from opencse.middle.rows import prepare

def run(corpus):
    check(corpus)
    rows = prepare(corpus)
    {last}
    return rows
""",
    "middle.rows": """
from opencse.low.read import check

def prepare(corpus) -> Path:
    check(corpus.path)
    return helper(corpus)

def helper(corpus):
    return corpus
""",
    "low.read": """
def check(path):
    return path

def fill(path, make):
    return make(path)
""",
}
ORDINARY = [
    ("low.read", "top.command"),
    ("middle.rows", "top.command"),
    ("low.read", "middle.rows"),
]
"""Neither a return to the caller nor a call within a file is a stop."""
CLIMB = ("top.command", "low.read")


@pytest.mark.parametrize(
    ("last", "more"),
    [
        ("", []),
        ("fill(rows, report)", [("low.read", "top.command"), CLIMB]),
        ("fill(None, lambda: report(rows))", []),
    ],
)
def test_a_climb_is_a_call_up_not_a_return(tmp_path, last, more) -> None:
    source = tmp_path / "src"
    for name, text in MODULES.items():
        path = source / "opencse" / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True)
        report = "\ndef report(rows):\n    return rows\n" if name == "top.command" else ""
        path.write_text(text.replace("{last}", last or "pass") + report)
    stops, floors = walk("opencse.top.command:run:corpus", source)
    assert stops == [Stop(f"opencse.{module}", f"opencse.{caller}") for module, caller in [*ORDINARY, *more]]
    climbs = [stop for stop in stops if floors[stop.module.split(".")[1]] > floors[stop.caller.split(".")[1]]]
    assert climbs == [Stop(*(f"opencse.{each}" for each in CLIMB))] * (CLIMB in more)
