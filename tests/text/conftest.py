from __future__ import annotations

import pytest
import torch

from opencse.text.views.registry import SourceRow
from tests.tiny import tiny_bert, tiny_roberta


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_roberta(tmp_path_factory.mktemp("roberta")))


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random Marian model with the tokenizer of tiny BERT, which needs no sentencepiece."""
    from transformers import AutoTokenizer, MarianConfig, MarianMTModel

    folder = tmp_path_factory.mktemp("marian")
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert(folder / "bert"))
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.sep_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        init_std=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MarianMTModel(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def as_rows(*texts: str) -> list[SourceRow]:
    return [SourceRow(id=i, text=text) for i, text in enumerate(texts)]


@pytest.fixture
def rows():
    return as_rows
