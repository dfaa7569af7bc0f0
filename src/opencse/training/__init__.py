"""Contrastive training of sentence encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import public_names

if TYPE_CHECKING:
    from opencse.training.first_stages import train_first_stages
    from opencse.training.loop import TrainingOutcome
    from opencse.training.session import RunControl
    from opencse.training.train import TrainingRun, train_encoder

__all__ = ["RunControl", "TrainingOutcome", "TrainingRun", "train_encoder", "train_first_stages"]

__getattr__ = public_names(
    __name__,
    ".first_stages:train_first_stages",
    ".loop:TrainingOutcome",
    ".session:RunControl",
    ".train:TrainingRun train_encoder",
)
