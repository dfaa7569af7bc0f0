"""The training engine: token store, batches, the loop, checkpoints."""

from opencse.runs.loop import Outcome
from opencse.training.train import Run, train

__all__ = ["Outcome", "Run", "train"]
