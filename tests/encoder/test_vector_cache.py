from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from opencse.encoder.embedder import Embedder, cached_vectors
from tests.tiny import tiny_bert

TEXTS = ["a dog", "The cat sits on the red house.", "a dog", "the red house"]


@pytest.fixture
def embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))
    transformer = Transformer(str(tiny_bert(tmp_path / "tiny")))
    width = transformer.get_embedding_dimension()
    return Embedder(SentenceTransformer(modules=[transformer, Pooling(width, "mean")]))


def stored(tmp_path: Path) -> int:
    return len(list((tmp_path / "cache" / "vectors").glob("*/store.arrow")))


def test_second_call_reads_what_the_first_wrote(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cached_vectors(embedder, TEXTS)
    assert np.array_equal(first, embedder.encode(TEXTS))
    monkeypatch.setattr(Embedder, "encode", lambda *_: pytest.fail("encoded again"))
    again = cached_vectors(embedder, TEXTS)
    assert np.array_equal(first, again)
    assert again.dtype == np.float32
    assert stored(tmp_path) == 1


@pytest.mark.parametrize("change", ["weights", "prompt", "precision", "order"])
def test_anything_that_moves_a_vector_is_another_entry(embedder: Embedder, tmp_path: Path, change: str) -> None:
    cached_vectors(embedder, TEXTS)
    texts = TEXTS
    if change == "weights":
        with torch.no_grad():
            next(iter(embedder.model.parameters())).add_(0.1)
    elif change == "prompt":
        embedder = Embedder(embedder.model, prompt="red: ")
    elif change == "precision":
        embedder = Embedder(embedder.model, precision="bf16")
    else:
        texts = TEXTS[::-1]
    found = cached_vectors(embedder, texts)
    assert np.array_equal(found, embedder.encode(texts))
    assert stored(tmp_path) == 2
