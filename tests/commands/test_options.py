"""Options that all commands share: where to compute, how much to say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opencse.commands.main import main
from opencse.foundation.progress import Verbosity, set_verbosity
from tests.tiny import WORDS, tiny_bert


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    for name in ("ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU"):
        monkeypatch.setenv(name, "")  # so that what a command sets is undone
        monkeypatch.delenv(name)
    yield
    set_verbosity(Verbosity.NORMAL)


@pytest.fixture
def train(tmp_path, monkeypatch, capfd):
    """Call `opencse train` on a few sentences; give exit code, stdout and stderr."""
    backbone = tiny_bert(tmp_path / "bert")
    capfd.readouterr()  # of writing the model
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"the {a} {b}" for a, b in zip(WORDS, WORDS[5:], strict=False)))
    words = ["opencse", "train", "simcse", str(corpus), "--backbone", str(backbone), "-o", str(tmp_path / "out")]
    words += ["--set", "training.max_steps=1", "--set", "training.batch_size=4"]

    def call(*options: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [*words, *options])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err

    return call


def test_a_run_says_where_it_computes_and_why_so(train) -> None:
    code, _, notes = train("--device", "cpu")
    assert code == 0
    (line,) = [line for line in notes.splitlines() if "training on" in line]
    assert line.startswith("opencse: training on cpu (")
    assert "the faster one here" in line
    assert os.environ["ACCELERATE_USE_CPU"] == "true"


def test_quiet_leaves_results(train) -> None:
    code, printed, notes = train("--quiet")
    assert code == 0
    assert "1 step in" in printed
    assert "opencse:" not in notes


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--device", "cuda"], "finds no such device"), (["--device", "gpu"], "no such kind"), (["-q", "-v"], "exclude")],
)
def test_mistakes_are_one_line_and_cost_nothing(train, tmp_path: Path, options, message) -> None:
    code, _, notes = train(*options)
    assert code == 2
    assert message in notes
    assert notes.count("\n") == 1
    assert not (tmp_path / "out").exists()
