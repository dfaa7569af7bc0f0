"""New masked language models, and given ones to train further."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from opencse.encoder.loading import is_sentence_transformer, quiet
from opencse.errors import OpencseError
from opencse.files import replaced_folder
from opencse.models import resolve
from opencse.pretraining.settings import Model


def new_model(settings: Model, tokenizer: Any) -> Any:
    """A BERT with random weights (drawn from PyTorch's global generator) and tied word embeddings."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.positions,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        type_vocab_size=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForMaskedLM(config)


def save_model(model: Any, tokenizer: Any, folder: Path, card: str) -> None:
    """Write a folder that transformers and sentence-transformers load; it appears whole or not at all."""
    with replaced_folder(folder) as temporary, quiet():
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8")
