"""Sentence encoders: backbones, prompts, pooling, projectors for training, export."""

from opencse.encoder.export import save_encoder
from opencse.encoder.loading import backbone_config, load_encoder
from opencse.encoder.projectors import build_projector, exported_projector
from opencse.encoder.prompts import Frame, bake_template, special_frame, template_frame

__all__ = [
    "Frame",
    "backbone_config",
    "bake_template",
    "build_projector",
    "exported_projector",
    "load_encoder",
    "save_encoder",
    "special_frame",
    "template_frame",
]
