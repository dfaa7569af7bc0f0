"""Contrastive training of sentence encoders."""

from opencse.training.first_stages import train_first_stages
from opencse.training.loop import TrainingOutcome
from opencse.training.session import RunControl
from opencse.training.train import TrainingRun, train_encoder

__all__ = ["RunControl", "TrainingOutcome", "TrainingRun", "train_encoder", "train_first_stages"]
