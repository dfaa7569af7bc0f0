"""`debias` on models of other shapes than all-MiniLM-L6-v2."""

from __future__ import annotations

import json

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

import opencse
from tests.commands.test_run import SENTENCES, SMALL
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
