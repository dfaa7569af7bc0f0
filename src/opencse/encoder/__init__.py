"""Sentence encoders: backbones, prompts, pooling, projectors for training, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import public_names

if TYPE_CHECKING:
    from opencse.encoder.loading import build_projector, exported_projector, load_encoder
    from opencse.encoder.model_folder import save_encoder
    from opencse.encoder.prompts import Frame, bake_template, special_frame, template_frame

__all__ = [
    "Frame",
    "bake_template",
    "build_projector",
    "exported_projector",
    "load_encoder",
    "save_encoder",
    "special_frame",
    "template_frame",
]

__getattr__ = public_names(__name__)
