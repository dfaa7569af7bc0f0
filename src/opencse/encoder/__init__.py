"""Sentence encoders: backbones, prompts, pooling, projectors for training, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from opencse.encoder.loading import load_encoder
    from opencse.encoder.saving import save_encoder

__all__ = ["load_encoder", "save_encoder"]

__getattr__ = lazy_names(__name__)
