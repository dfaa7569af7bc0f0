"""Meaning blocks that were trained before: those that come with the package, and those of a user's models."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from opencse.encoder.meaning_block import MeaningBlock
from opencse.encoder.weights_hash import pooling_name
from opencse.foundation.reading import ASSETS, read_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BLOCKS = ASSETS / "meaning-block"
MEASURED = "measured.json"
"""File beside a block's own: the key of the model that it was trained for, and its scores by strength."""


def block_key(model: SentenceTransformer) -> str:
    """Return the SHA-256 of the parameters of a model and of its pooling: what a block depends on.

    Unlike `opencse.encoder.weights_hash`, it does not depend on how a library writes tokenizers.
    """
    digest = hashlib.sha256(pooling_name(model).encode())
    for name, tensor in sorted(model.named_parameters()):
        if ".pooler." not in name:
            digest.update(f"{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().float().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def shipped_block(model: SentenceTransformer) -> Path | None:
    """Return the folder of the block that comes with the package for a model; None if there is none."""
    known = {str(read_json(path)["beside"]): path.parent for path in sorted(BLOCKS.glob(f"*/{MEASURED}"))}
    return known.get(block_key(model)) if known else None


def append_block(model: SentenceTransformer, block: MeaningBlock) -> None:
    """Append a block to the modules of a model whose first one is a transformer."""
    first: Any = model[0]
    first.auto_model.config.output_hidden_states = True
    model.append(block.to(model.device))
