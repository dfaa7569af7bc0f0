"""What terms build their modules from, around a tiny encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from opencse.encoder import load_encoder
from opencse.encoder.loading import load_masked_lm
from opencse.losses import TermBuildContext


def build_context(folder: Path, projector: nn.Module | None = None, **changes: Any) -> TermBuildContext:
    encoder = load_encoder(folder, pooling="cls")
    settings = {
        "width": encoder.get_embedding_dimension(),
        "encoder": encoder,
        "projector": nn.Identity() if projector is None else projector,
        "transformer": encoder[0].auto_model,
        "tokenizer": encoder.tokenizer,
        "masked_lm": lambda name: load_masked_lm(folder if name == "backbone" else name)[0],
    }
    return TermBuildContext(**settings | changes)


def toy_build_context(encoder: nn.Module, width: int = 3) -> TermBuildContext:
    """TermBuildContext of something that is no sentence encoder."""
    return TermBuildContext(
        width=width, encoder=encoder, projector=nn.Identity(), transformer=None, tokenizer=None, masked_lm=nn.Module
    )
