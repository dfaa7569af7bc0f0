"""What is exported encodes as training's own evaluation did."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder.embedder import Embedder
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import FakeDev, run, write_corpus

PROMPTS = [f"views.{v}.prompt='This sentence : \"{{}}\" means {{mask}}'" for v in ("anchor", "twin")]
TEXTS = ["the cat sits", "", "[MASK] and <mask>", "a dog " * 200, "no 🙂 \u202e bird"]


@pytest.mark.parametrize(
    ("build", "pooling"),
    zip(
        [tiny_bert, tiny_roberta, tiny_bert, tiny_roberta, tiny_bert, tiny_bert],
        ["cls", "mean", "first_last", "mask", "mask", "backbone"],
        strict=True,
    ),
)
def test_export(tmp_path, build, pooling: str) -> None:
    backbone = build(tmp_path / "plain")
    if pooling == "backbone":
        from opencse.encoder import load_encoder, save_encoder

        save_encoder(load_encoder(backbone, pooling="mean"), tmp_path / "st")
        backbone = tmp_path / "st"
    dev = FakeDev()
    settings = [f"encoder.pooling={pooling}", "training.precision=bf16", *(PROMPTS if pooling == "mask" else [])]
    result = run(write_corpus(tmp_path, 24), backbone, tmp_path / "out", *settings, dev=dev)
    exported = SentenceTransformer(str(result.model), device="cpu")
    np.testing.assert_allclose(exported.encode(TEXTS), Embedder(dev.encoder).encode(TEXTS), atol=1e-5)
    modules = json.loads((result.model / "modules.json").read_text())
    assert all(m["type"].startswith("sentence_transformers.") for m in modules)
    assert "opencse" not in (result.model / "config.json").read_text()
