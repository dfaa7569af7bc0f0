"""Each example of a vector database finds what a plain product of the vectors finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder.names import resolve
from opencse.text import demo
from opencse.text.corpus import Corpus

FOLDER = Path(__file__).parent.parent / "examples" / "search"
LIBRARIES = {
    "faiss_index": "faiss",
    "haystack_store": "haystack",
    "langchain_store": "langchain_core",
    "llama_index_store": "llama_index.core",
    "qdrant_embedded": "qdrant_client",
}
QUERY = "The bridge is not open."


def test_every_example_is_listed() -> None:
    assert sorted(LIBRARIES) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def nearest() -> list[str]:
    """The three nearest sample sentences, by numpy."""
    model, texts = SentenceTransformer(resolve("minilm")), list(Corpus(demo.corpus("demo")).texts())
    vectors = model.encode([*texts, QUERY], normalize_embeddings=True)
    return [texts[row] for row in np.argsort(-vectors[:-1] @ vectors[-1])[:3]]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_finds_the_nearest_sentences(name: str, nearest: list[str]) -> None:
    pytest.importorskip(LIBRARIES[name], reason="see examples/search/requirements.txt")
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "minilm", QUERY],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HAYSTACK_TELEMETRY_ENABLED": "False"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()] == nearest
