"""Encoders of other families are backbones like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoConfig, AutoModel, AutoTokenizer

from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert
from tests.training.helpers import run, write_corpus

SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
CONFIGS = {
    "distilbert": {"n_layers": 2, "dim": 32, "n_heads": 4, "hidden_dim": 64},
    "mpnet": SHAPE,
    "electra": SHAPE | {"embedding_size": 32},
    "modernbert": SHAPE | {"attention_dropout": 0.1, "mlp_dropout": 0.1, "embedding_dropout": 0.1},
}


def backbone(folder: Path, kind: str, **changes: object) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert(folder / "bert"))
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    settings = (
        {"vocab_size": len(tokenizer), "pad_token_id": 0, "max_position_embeddings": 66} | CONFIGS[kind] | changes
    )
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(kind, **settings))
    model.save_pretrained(folder / kind)
    tokenizer.save_pretrained(folder / kind)
    return folder / kind


@pytest.mark.parametrize(("kind", "precision"), zip(CONFIGS, ("fp32", "bf16", "fp32", "bf16"), strict=True))
def test_it_trains_and_exports(tmp_path, kind: str, precision: str) -> None:
    corpus = write_corpus(tmp_path, 24)
    settings = [f"training.precision={precision}", "encoder.pooling=mean"]
    result = run(corpus, backbone(tmp_path, kind), tmp_path / "out", *settings)
    assert SentenceTransformer(str(result.model), device="cpu").encode(["the cat"]).shape == (1, 32)


def test_a_model_built_without_dropout_gets_some_when_asked(tmp_path) -> None:
    corpus = write_corpus(tmp_path, 24)
    still = backbone(tmp_path, "modernbert", attention_dropout=0.0, mlp_dropout=0.0, embedding_dropout=0.0)
    with pytest.raises(OpencseError, match=r"dropout is 0.*encoder\.dropout=0\.1"):
        run(corpus, still, tmp_path / "out")
    run(corpus, still, tmp_path / "out", "encoder.dropout=0.1")
