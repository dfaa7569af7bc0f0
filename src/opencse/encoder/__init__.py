"""From sentences to vectors: backbones, prompts, pooling, train-only projectors, export."""

from opencse.encoder.export import save_encoder
from opencse.encoder.loading import backbone_config, load_encoder
from opencse.encoder.projectors import build_projector
from opencse.encoder.prompts import Frame, bake, special_frame, template_frame

__all__ = [
    "Frame",
    "backbone_config",
    "bake",
    "build_projector",
    "load_encoder",
    "save_encoder",
    "special_frame",
    "template_frame",
]
