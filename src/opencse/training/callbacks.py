"""What happens around the training steps: the callbacks of a run, and what they see of it.

The methods have the names of transformers' `TrainerCallback` if they mean the same. The log, the
development scores, early stopping, the forecast and the checkpoints are callbacks, too
(`opencse.training.log`, `selection`, `forecast`, `checkpoint`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from opencse.encoder.backbone import Backbone
from opencse.foundation.progress import Phase
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.training.batches import Batch, BatchSampler
from opencse.training.checkpoint import Checkpoints, TrainingState
from opencse.training.model_card import CardAdditions
from opencse.training.session import TrainingSession
from opencse.training.sharding import ShardedNetwork
from opencse.training.signals import StopSignal

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(kw_only=True)
class ActiveRun:
    """A run while it trains, as callbacks see it.

    Attributes:
        recipe: The resolved recipe.
        session: The run's folder, processes, device, record and notes.
        network: The encoder, and everything that is trained with it.
        sharded: The trained copy of the network if it is divided among the processes
            (`training.shard_weights`), else None. `network` then has the weights of the last call
            of `gather_weights`, in the main process.
        optimizer: The optimiser; each group has its learning rate at the peak as `peak`.
        scaler: The scaler of the loss, which is enabled in fp16.
        checkpoints: The checkpoints of the run.
        state: What a checkpoint stores in addition to weights, moments and generators.
        steps: Steps at which training ends.
        callbacks: The callbacks, in the order in which they are called.
        corpus: The text of the training rows.
        sampler: Row numbers of each step.
        collator: Returns the batch of some row numbers.
        card: What callbacks add to the model card.
        warnings: Warnings for the user, which callbacks may add to.
        interrupted: Whether this process received a signal to stop.
        stopped: Why training ends after this step; empty if it continues.
        evaluation_seconds: Seconds of the last evaluation.
        all_evaluation_seconds: Seconds of all evaluations since the start of the process.
        began: Time at which training would have begun, had it never been interrupted.
        phase: The progress bar.
    """

    recipe: Recipe
    session: TrainingSession
    network: Any
    sharded: ShardedNetwork | None = None
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    checkpoints: Checkpoints
    state: TrainingState
    steps: int
    callbacks: Sequence[TrainingCallback]
    corpus: Corpus
    sampler: BatchSampler
    collator: Callable[[Any], Batch]
    phase: Phase = field(init=False)
    interrupted: StopSignal = field(default_factory=StopSignal)
    card: CardAdditions = field(default_factory=CardAdditions)
    warnings: list[str] = field(default_factory=list)
    stopped: str = ""
    evaluation_seconds: float = 0.0
    all_evaluation_seconds: float = 0.0
    began: float = 0.0

    @property
    def step(self) -> int:
        """Optimiser steps done."""
        return self.state.step

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder with its current weights."""
        encoder: SentenceTransformer = self.network.encoder
        return encoder

    @property
    def main(self) -> bool:
        """Whether this is the main process, the only one that writes files."""
        return self.session.main

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.session.folder

    @property
    def seconds(self) -> float:
        """Training time so far, over all resumptions."""
        return self.clock() - self.began

    def clock(self) -> float:
        """Return the time in seconds; deadlines are times of this clock."""
        return time.perf_counter()

    def gather_weights(self) -> None:
        """Make sure that `network` has the current weights; every process must call this."""
        if self.sharded is not None:
            self.sharded.gather()

    def stop(self, reason: str) -> None:
        """End training after this step; every process must come to the same decision."""
        self.stopped = reason
        self.session.notify(f"training ends after step {self.step:,}: {reason}")

    def call(self, event: str, *values: Any) -> None:
        """Call the method of this name of every callback."""
        for callback in self.callbacks:
            getattr(callback, event)(self, *values)


class TrainingCallback:
    """Base class of callbacks; each method does nothing unless a subclass replaces it.

    In several processes, every process calls its own callbacks; `run.main` is true in one of them.
    A callback that changes what is trained must do so as a function of seed and step, or a resumed
    run would differ from one that was never interrupted.

    Example:
        >>> class PrintLoss(TrainingCallback):
        ...     def on_log(self, run, values):
        ...         print(f"step {run.step}: loss {values['loss']:.3f}")
    """

    def prepare_encoder(self, encoder: SentenceTransformer, backbone: Backbone) -> None:
        """Change the encoder before the network is built around it, such as by appending a module."""

    def digests(self) -> dict[str, str]:
        """Return hashes, by name, that a resumed run must share with its start."""
        return {}

    def parameter_groups(self, network: nn.Module) -> Iterable[dict[str, Any]]:
        """Return parameters with their own learning rate, as `{"params": [...], "lr": 1e-4}`."""
        return ()

    def on_train_begin(self, run: ActiveRun) -> None:
        """Act before the first step, of a resumed run after its checkpoint was read."""

    def on_step_end(self, run: ActiveRun, values: dict[str, Tensor]) -> None:
        """Act after a step; `values` has the loss and what else the step reported, on the device."""

    def on_log(self, run: ActiveRun, values: dict[str, float]) -> None:
        """Act after a line of means since the last one was written to `metrics.jsonl`."""

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        """Act after an evaluation; `scores["dev"]` is the development score."""

    def on_save(self, run: ActiveRun, checkpoint: Path) -> None:
        """Act after a checkpoint was written; called in the main process only."""

    def on_train_end(self, run: ActiveRun) -> None:
        """Act after the last step, when the encoder has the weights that are kept."""
