"""`debias` on models of other shapes than all-MiniLM-L6-v2."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

import opencse
from opencse.encoder import load_encoder
from opencse.encoder.meaning_block import MeaningBlock
from tests.commands.test_run import BLOCK, SENTENCES
from tests.tiny import tiny_bert


def model_of(kind: str, folder) -> SentenceTransformer:
    transformer = Transformer(str(tiny_bert(folder)))
    modules = {
        "dense": [Pooling(32, "mean"), Dense(32, 8), Normalize()],
        "prompt": [Pooling(32, "cls")],
    }
    prompts = {"prompts": {"query": "the house : "}, "default_prompt_name": "query"} if kind == "prompt" else {}
    return SentenceTransformer(modules=[transformer, *modules[kind]], device="cpu", **prompts)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(SENTENCES)
    return path


@pytest.mark.parametrize("kind", ["dense", "prompt"])
def test_a_model_keeps_its_shape(tmp_path, corpus, kind) -> None:
    model = model_of(kind, tmp_path / "bert")
    model.save(str(tmp_path / "model"))
    out = tmp_path / "out"
    opencse.run("debias", corpus, backbone=tmp_path / "model", out=out, overrides=BLOCK, progress=False)
    debiased = load_encoder(out / "model", device="cpu")
    assert [type(module) for module in debiased] == [*(type(module) for module in model), MeaningBlock]
    old = model.encode("The soup is hot.", normalize_embeddings=True)
    new = debiased.encode("The soup is hot.", truncate_dim=len(old), normalize_embeddings=True)
    np.testing.assert_allclose(new, old, atol=1e-5)
    assert debiased.max_seq_length == model.max_seq_length
    assert debiased.default_prompt_name == model.default_prompt_name
    assert debiased.prompts.get("query") == model.prompts.get("query")
