import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from opencse.encoder import load_encoder
from opencse.text import demo

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs_for_three_steps(example, tmp_path):
    done = subprocess.run(
        [sys.executable, str(example), str(tmp_path / "out"), "3"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


def test_a_loss_of_the_package_trains_in_a_plain_loop(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    from plain_loop import train

    torch.manual_seed(1)
    encoder = load_encoder("mini-mlm", pooling="mean")
    sentences = demo.corpus("demo").read_text(encoding="utf-8").splitlines()[:18]
    first, last = (train(encoder, sentences, steps) for steps in (1, 6))
    assert last["loss"] < first["loss"]
    assert set(last) == {"loss", "accuracy", "cos_positive", "cos_other"}


@pytest.mark.parametrize("example", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_is_short_and_says_how_to_run_it(example):
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert f"python examples/{example.relative_to(FOLDER)}" in (ast.get_docstring(ast.parse(text)) or "")
