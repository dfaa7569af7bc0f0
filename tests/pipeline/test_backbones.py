"""`debias` on models of other shapes than all-MiniLM-L6-v2."""

from __future__ import annotations

import json

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

import opencse
from opencse.errors import OpencseError
from tests.pipeline.test_run import SENTENCES, SMALL
from tests.tiny import tiny_bert


def model_of(kind: str, folder) -> SentenceTransformer:
    transformer = Transformer(str(tiny_bert(folder)))
    modules = {
        "cls": [Pooling(32, "cls")],
        "dense": [Pooling(32, "mean"), Dense(32, 8), Normalize()],
        "prompt": [Pooling(32, "mean")],
    }
    prompts = {"prompts": {"query": "the house : "}, "default_prompt_name": "query"} if kind == "prompt" else {}
    return SentenceTransformer(modules=[transformer, *modules[kind]], device="cpu", **prompts)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(SENTENCES)
    return path


@pytest.mark.parametrize("kind", ["cls", "dense", "prompt"])
def test_a_model_keeps_its_shape(tmp_path, corpus, kind) -> None:
    model = model_of(kind, tmp_path / "bert")
    model.save(str(tmp_path / "model"))
    out = tmp_path / "out"
    settings = [*SMALL, "training.log_every=1"]
    opencse.run("debias", corpus, backbone=tmp_path / "model", out=out, overrides=settings, progress=False)
    debiased = SentenceTransformer(str(out / "model"), device="cpu")
    assert [type(module) for module in debiased] == [type(module) for module in model]
    assert debiased.encode("The soup is hot.").shape == model.encode("The soup is hot.").shape
    assert debiased.max_seq_length == model.max_seq_length
    assert debiased.default_prompt_name == model.default_prompt_name
    assert debiased.prompts.get("query") == model.prompts.get("query")
    first = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert first["neighbours/rms"] < 1e-3, "the model begins where its untouched copy is"


def test_guards_hold_for_truncated_vectors(tmp_path, corpus) -> None:
    model_of("cls", tmp_path / "bert").save(str(tmp_path / "model"))
    options = {"backbone": tmp_path / "model", "progress": False}
    settings = [*SMALL, "optimizer.lr=0.01", "selection.guard_tolerance=0.3", "selection.dimensions=[16, 8]"]
    result = opencse.run("debias", corpus, out=tmp_path / "out", overrides=settings, **options)
    guards = result.run.outcome.guards
    assert len(guards) == 12
    assert {"guard-topics", "guard-topics at 16 dimensions", "guard-topics at 8 dimensions"} <= set(guards)
    assert all(after >= before - 0.3 for before, after in guards.values())
    assert "guard-topics at 8 dimensions" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("recipe", "dimensions", "message"),
    [
        ("debias", "[32]", "truncated to 32 dimensions: those of .* have 32"),
        ("debias", "[0]", "dimensions must be at least 1"),
        ("simcse", "[8]", "give a guard_tolerance"),
    ],
)
def test_dimensions_that_cannot_be_guarded(tmp_path, corpus, recipe, dimensions, message) -> None:
    model_of("cls", tmp_path / "bert").save(str(tmp_path / "model"))
    settings = [*SMALL, f"selection.dimensions={dimensions}"]
    with pytest.raises(OpencseError, match=message):
        opencse.run(recipe, corpus, backbone=tmp_path / "model", out=tmp_path / "out", overrides=settings)
    assert not (tmp_path / "out").exists()
