"""Contrastive training of sentence encoders."""

from opencse.runs.loop import Outcome
from opencse.training.other_runs import train_first_stages
from opencse.training.train import Run, train

__all__ = ["Outcome", "Run", "train", "train_first_stages"]
