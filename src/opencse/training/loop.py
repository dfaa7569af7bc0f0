"""The training loop: steps, evaluation, checkpoints, resumption."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from opencse.encoder.precision import MixedPrecision
from opencse.foundation.errors import Interrupted, OpencseError
from opencse.foundation.measure import Measures
from opencse.foundation.progress import Notify, Phase, about, timed
from opencse.recipes import Recipe
from opencse.training.batches import BatchSampler
from opencse.training.checkpoint import (
    Checkpoints,
    TrainingState,
    all_random_states,
    check_weights,
    load_weights,
    save_weights,
    set_random_state,
)
from opencse.training.log import MetricsLog
from opencse.training.network import Network
from opencse.training.optimizer import adamw, rate_factor
from opencse.training.strength import StrengthCurve

if TYPE_CHECKING:
    from accelerate import Accelerator

MEASURED_STEPS = 20
"""Steps after which the time of the training is known, and is limited if there is a deadline."""


@dataclass(frozen=True)
class TrainingOutcome:
    """Result of a training run.

    Attributes:
        steps: Optimiser steps done.
        best_step: The step whose weights were kept; None without a development set (the last weights are kept).
        best_score: The development score of the weights that were kept.
        first_score: The development score before the first step.
        seconds: Training time, evaluation included.
        curve: Scores by the strength of the meaning block, for recipes that train one.
    """

    steps: int
    best_step: int | None
    best_score: float | None
    first_score: float | None
    seconds: float
    curve: StrengthCurve | None = None


@dataclass(frozen=True, kw_only=True)
class LoopHost:
    """What a training loop runs in.

    Attributes:
        folder: Folder for metrics, checkpoints and the best weights.
        accelerator: Devices and processes.
        checkpoints: The checkpoints of the run.
        progress: Show progress.
        notify: Receives the expected time, after the first steps.
        deadline: Time by `time.perf_counter` at which training is to end. The number of steps that fit is computed
            once, after the first `MEASURED_STEPS`; the schedule then runs to its end by that number.
        step_limit: That number, if the run is resumed and had it.
        keep_step_limit: Receives the number when it is computed, in the main process.
    """

    folder: Path
    accelerator: Accelerator
    checkpoints: Checkpoints
    progress: bool = True
    notify: Notify = lambda _: None
    deadline: float | None = None
    step_limit: int | None = None
    keep_step_limit: Callable[[int], None] = lambda _: None


class TrainingLoop:
    """The training loop of a run in its folder.

    Args:
        network: The network to train.
        assembler: Returns the batch of some row numbers.
        sampler: Returns the row numbers of each batch.
        recipe: The recipe.
        measures: What is measured of the encoder, started with it; only the main process asks for scores.
        host: What the loop runs in.
    """

    def __init__(
        self,
        network: Network,
        assembler: Callable[[Any], Any],
        sampler: BatchSampler,
        recipe: Recipe,
        measures: Measures,
        host: LoopHost,
    ) -> None:
        self.network, self.assembler, self.sampler, self.recipe = network, assembler, sampler, recipe
        self.measures, self.host, self.step_limit = measures, host, host.step_limit
        self.folder, self.accelerator, self.checkpoints = host.folder, host.accelerator, host.checkpoints
        self.main, self._distributed = self.accelerator.is_main_process, self.accelerator.num_processes > 1
        self.show = host.progress and self.main
        steps = recipe.training.epochs * sampler.batches_per_epoch
        self.steps = min(steps, recipe.training.max_steps or steps)
        self.best_path = self.folder / "best.safetensors"
        self.stop = StopSignal()
        self._evaluation_seconds = 0.0

    def run(self, resume: bool = False) -> TrainingOutcome:
        """Train to the end; with `resume`, start from the latest checkpoint, if there is one.

        Raises:
            OpencseError: The loss is not finite, the disk is full, or the checkpoint does not fit.
            Interrupted: The process received SIGINT or SIGTERM; a checkpoint was written first.
        """
        self._freeze_unused()
        name = self.recipe.training.precision
        assert name != "auto"  # settled before the run began
        self.precision = MixedPrecision(name, self.network, self.accelerator.device)
        self.optimizer = adamw(self.network, self.recipe.optimizer, self.recipe.block)
        self.state = TrainingState()
        latest = self.checkpoints.latest() if resume else None
        if latest is not None:
            process = self.accelerator.process_index
            self.state, generators = self.checkpoints.load(latest, self.network, self.optimizer, process)
            self.precision.scaler.load_state_dict(self.state.scaler)
            set_random_state(generators, self.accelerator.device)
            if self.main and self.state.best_step >= 0:
                check_weights(self.best_path)  # fails now, not after all the steps
        self.model = self.accelerator.prepare_model(self.network) if self._distributed else self.network
        self.log = MetricsLog(self.folder / "metrics.jsonl", self.state.step, self.accelerator) if self.main else None
        try:
            with self.stop.awaited():
                self._train()
        finally:
            if self.log is not None:
                self.log.close()
        return self._finish()

    def _train(self) -> None:
        self._clock = time.perf_counter() - self.state.seconds
        training, selection = self.recipe.training, self.recipe.selection
        self.network.train()
        with Phase("training", total=self.steps, unit="steps", initial=self.state.step, show=self.show) as phase:
            if self.state.step == 0 and self.measures.development is not None:
                self._evaluate(phase, select=False)
            exhausted, _ = self._agreed()
            start, began = self.state.step, time.perf_counter()
            self._limit_steps(phase)
            if self.host.deadline is not None and self.step_limit is None and began > self.host.deadline:
                self.host.notify(f"the time is over before training: it ends after its first {MEASURED_STEPS} steps")
            while self.state.step < self.steps and not exhausted:
                self._step()
                phase.update()
                step = self.state.step
                if step in (MEASURED_STEPS, start + MEASURED_STEPS):
                    self._check_finite()  # waits for the device, whose steps are timed
                    self._forecast((time.perf_counter() - began) / (step - start), phase)
                if step % training.log_every == 0 or step == self.steps:
                    self._write_log(phase)
                if self.measures.development is not None and (step % selection.every == 0 or step == self.steps):
                    self._evaluate(phase, select=True)
                exhausted, stopped = self._agreed()
                at_checkpoint = training.checkpoint_every and step % training.checkpoint_every == 0
                if stopped or (at_checkpoint and step < self.steps):
                    self._save()
                if stopped:
                    raise Interrupted(f"stopped at step {step} of {self.steps}; go on with --resume")

    def _forecast(self, seconds: float, phase: Phase) -> None:
        """Say how long training takes, from the mean seconds of a step so far; limit the steps if there is a deadline.

        A limit is computed once in a run, at a fixed step, and recorded: a resumed run takes the same steps.
        """
        step, now = self.state.step, time.perf_counter()
        seconds += self._evaluation_seconds / self.recipe.selection.every
        if step == MEASURED_STEPS and self.host.deadline is not None and self.step_limit is None:
            fitting = step + max(0, int((self.host.deadline - now) / seconds))
            steps = torch.tensor(float(min(fitting, self.steps)) if self.main else 0.0, device=self.accelerator.device)
            self.step_limit = int(self.accelerator.reduce(steps, "sum"))  # the main process's clock counts
            if self.main:
                self.host.keep_step_limit(self.step_limit)
        self._limit_steps(phase)
        if step < self.steps:
            expected = now - self._clock + seconds * (self.steps - step)
            self.host.notify(f"training takes about {about(expected)}: {self.steps:,} steps")
        elif self.host.deadline is not None:
            self.host.notify(f"the time is over: training ends after step {step}")

    def _limit_steps(self, phase: Phase) -> None:
        """Apply the limit, from the step at which it was computed."""
        if self.step_limit is not None and self.state.step >= MEASURED_STEPS:
            self.steps = min(self.steps, self.step_limit)
            phase.total = self.steps

    def _step(self) -> None:
        """Do one optimiser step."""
        state, training = self.state, self.recipe.training
        parts = self._parts(self.sampler.batch(state.step))
        every = training.gradient_norms_every
        for i, rows in enumerate(parts):
            batch = self.assembler(rows).to(self.accelerator.device)
            last = i == len(parts) - 1
            with self.accelerator.no_sync(self.model) if self._distributed and not last else contextlib.nullcontext():
                with self.precision.forward():
                    with_norms = bool(every) and state.step % every == 0
                    loss, values, reports = self.model(batch, state.step, state.step / self.steps, with_norms)
                self.precision.backward(loss / len(parts))
            self._count({"loss": loss, **values, **reports})
        if self.accelerator.device.type == "cpu":
            self._check_finite()  # elsewhere it would wait for the device at every step
        norm = self.precision.collect_gradients(self.optimizer, self.recipe.optimizer.max_grad_norm or math.inf)
        self._count({"grad_norm": norm})
        factor = rate_factor(self.recipe.schedule, state.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        self.precision.step(self.optimizer)
        state.step += 1

    def _parts(self, rows: Any) -> list[Any]:
        """Return the rows of this process in each part of a batch."""
        count, rank = self.accelerator.num_processes, self.accelerator.process_index
        size = len(rows) // self.recipe.training.accumulate
        share = size // count
        starts = [p * size + rank * share for p in range(self.recipe.training.accumulate)]
        return [rows[s : s + share] for s in starts]

    def _count(self, values: dict[str, Any]) -> None:
        """Add values to the running sums, which stay on the device until the log is written.

        Each name has its own count: a rare view is not in every batch, and norms are not measured at every step.
        """
        sums, counts = self.state.sums, self.state.counts
        for name, value in values.items():
            value = value.detach() if isinstance(value, torch.Tensor) else value
            sums[name] = sums.get(name, 0.0) + value
            counts[name] = counts.get(name, 0) + 1

    def _check_finite(self) -> None:
        sums = {name: float(value) for name, value in self.state.sums.items()}
        if math.isfinite(sums.get("loss", 0.0)):
            return
        terms = [n for n, v in sums.items() if not math.isfinite(v) and n not in ("loss", "grad_norm")]
        latest = self.checkpoints.latest()
        kept = f"the last good checkpoint is {latest}" if latest else "there is no checkpoint yet"
        raise OpencseError(
            f"the loss is {sums['loss']} by step {self.state.step} (term {', '.join(terms) or 'sum'}); {kept}",
            "Lower the learning rate (--set optimizer.lr=…), or use --set training.precision=fp32.",
        )

    def _write_log(self, phase: Phase) -> None:
        self._check_finite()
        state = self.state
        means = {name: float(value) / state.counts[name] for name, value in state.sums.items()}
        if self.log is not None:
            seconds = round(time.perf_counter() - self._clock, 2)
            self.log.write(state.step, {**means, "lr": self.optimizer.param_groups[0]["lr"], "seconds": seconds})
        phase.details = self._postfix | {"loss": f"{means['loss']:.4f}"}
        state.sums, state.counts = {}, {}

    @property
    def _postfix(self) -> dict[str, str]:
        best = self.state.best_score
        return {} if best is None else {"best": f"{best:.2f}@{self.state.best_step}"}

    def _evaluate(self, phase: Phase, select: bool) -> None:
        """Compute the development score, and save the weights if it is the best so far."""
        self._check_finite()
        began = time.perf_counter()
        with timed("development scores"):
            score = self.measures.development_score() if self.main else 0.0
        self._evaluation_seconds = time.perf_counter() - began
        state = self.state
        if self.log is not None:
            self.log.write(state.step, {"dev": score, **self.measures.watched()})
        if not select:
            state.first_score = score
        elif state.best_score is None or score > state.best_score:
            state.best_score, state.best_step, state.stale = score, state.step, 0
            if self.main:
                # Only the encoder is exported; the modules of the terms can be as large.
                save_weights(self.network.encoder, self.best_path, {"step": str(state.step), "score": repr(score)})
        else:
            state.stale += 1
        phase.details = {"dev": f"{score:.2f}"} | self._postfix
        self.network.train()

    def _agreed(self) -> tuple[bool, bool]:
        """Return whether early stopping is due, as the main process sees it, and whether any process is to stop.

        All processes act on the same answer: one that went on while another saves would wait for it for ever.
        """
        patience = self.recipe.selection.patience
        exhausted = self.main and patience is not None and self.state.stale >= patience
        if not self._distributed:
            return exhausted, self.stop.received
        flags = torch.tensor([float(exhausted), float(self.stop.received)], device=self.accelerator.device)
        exhausted, stopped = (self.accelerator.reduce(flags, "sum") > 0).tolist()
        return exhausted, stopped

    def _save(self) -> None:
        self._check_finite()
        self.state.seconds = time.perf_counter() - self._clock
        self.state.scaler = self.precision.scaler.state_dict()
        self.state.sums = {name: float(value) for name, value in self.state.sums.items()}
        states = all_random_states(self.accelerator)
        if self.main:
            self.checkpoints.save(self.network, self.optimizer, states, self.state)
        self.accelerator.wait_for_everyone()

    def _finish(self) -> TrainingOutcome:
        state = self.state
        if self.main and self.measures.development is not None:
            load_weights(self.network.encoder, self.best_path)
        seconds = time.perf_counter() - self._clock
        kept = None if self.measures.development is None else state.best_step
        return TrainingOutcome(state.step, kept, state.best_score, state.first_score, seconds)

    def _freeze_unused(self) -> None:
        """Freeze the parameters that do not affect the loss, found by a step on two rows that is thrown away.

        With several processes, such parameters (an unused pooler) would stall the training, which waits for their
        gradients. The step also finds mistakes before any time is spent. The random state does not change.
        """
        auxiliary = self.network.head.auxiliary  # some terms keep vectors and counts from step to step
        weights = dict(auxiliary.named_parameters())
        memory = {name: value.clone() for name, value in auxiliary.state_dict().items() if name not in weights}
        with torch.random.fork_rng(devices=[]):
            batch = self.assembler(self.sampler.batch(0)[:2]).to(self.accelerator.device)
            self.network.train()
            loss, _, _ = self.network(batch)
            loss.backward()
        for parameter in self.network.parameters():
            if parameter.grad is None:
                parameter.requires_grad_(False)
            parameter.grad = None
        auxiliary.load_state_dict(memory, strict=False)


class StopSignal:
    """Whether SIGINT or SIGTERM was received; a second one ends the process at once."""

    received = False

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """Handle the signals in this context; Python allows handlers in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old_handlers = {s: signal.signal(s, self._receive) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            sys.exit(130)
        self.received = True
