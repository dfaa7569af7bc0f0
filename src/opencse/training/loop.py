"""The training loop: steps, evaluation, checkpoints, resumption."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from opencse.debias.meaning_block import block_of
from opencse.encoder.device import autocast, same_random_state
from opencse.foundation.errors import Interrupted, OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.files import write_text
from opencse.foundation.progress import Phase, about, timed
from opencse.recipes import Recipe
from opencse.recipes.settings import Block, Optimizer, Schedule
from opencse.training.batches import BatchSampler
from opencse.training.checkpoint import (
    Checkpoints,
    TrainingState,
    all_random_states,
    check_weights,
    load_weights,
    save_weights,
)
from opencse.training.network import Network
from opencse.training.optimizers import TransformersAdamW
from opencse.training.session import TrainingOutcome, TrainingSession

MEASURED_STEPS = 20
"""Steps after which the time of the training is known, and is limited if there is a deadline."""


class TrainingLoop:
    """The training loop of a run in its folder.

    Args:
        network: The network to train.
        collator: Returns the batch of some row numbers.
        rows: Number of training rows.
        recipe: The recipe.
        evaluators: What is measured of the encoder, started with it; only the main process asks for
            scores.
        session: The run, which was begun.
    """

    def __init__(
        self,
        network: Network,
        collator: Callable[[Any], Any],
        rows: int,
        recipe: Recipe,
        evaluators: Evaluators,
        session: TrainingSession,
    ) -> None:
        self.network, self.collator, self.recipe, self.evaluators = (
            network,
            collator,
            recipe,
            evaluators,
        )
        self.session, self.accelerator, self.main = session, session.accelerator, session.main
        self._distributed = self.accelerator.num_processes > 1
        training = recipe.training
        processes = self.accelerator.num_processes
        self.sampler = BatchSampler(rows, min(training.batch_size, rows), training.seed, processes)
        steps = training.epochs * self.sampler.batches_per_epoch
        self.steps = min(steps, training.max_steps or steps)
        if warmup_steps(recipe.schedule, self.steps) >= self.steps > 1:
            session.notify(
                f"warning: the warm-up takes all {self.steps} steps of the run: the learning rate never reaches its peak "
                "(--set schedule.warmup=0.1)"
            )
        folder = session.folder
        self.checkpoints = Checkpoints(
            folder / "checkpoints", session.record["fingerprint"], session.notify
        )
        self.best_path, self.log_path = folder / "best.safetensors", folder / "metrics.jsonl"
        self.stop = StopSignal()
        self._evaluation_seconds = 0.0

    def run(self) -> TrainingOutcome:
        """Train to the end, from the latest checkpoint of a run that is resumed.

        Raises:
            OpencseError: The loss is not finite, the disk is full, or the checkpoint does not fit.
            Interrupted: The process received SIGINT or SIGTERM; a checkpoint was written first.
        """
        self._freeze_unused()
        device, precision = self.accelerator.device, self.recipe.training.precision
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
        self.optimizer = adamw(self.network, self.recipe.optimizer, self.recipe.block)
        self.state = TrainingState()
        latest = self.checkpoints.latest() if self.session.resume else None
        if latest is not None:
            process = self.accelerator.process_index
            self.state = self.checkpoints.load(
                latest, self.network, self.optimizer, device, process
            )
            self.scaler.load_state_dict(self.state.scaler)
            if self.main and self.state.best_step >= 0:
                check_weights(self.best_path)  # fails now, not after all the steps
        self.model = (
            self.accelerator.prepare_model(self.network) if self._distributed else self.network
        )
        if self.main:
            drop_lines_after(self.log_path, self.state.step)
        with self.stop.awaited():
            self._train()
        return self._finish()

    def _train(self) -> None:
        self._clock = time.perf_counter() - self.state.seconds
        training, selection = self.recipe.training, self.recipe.selection
        deadline, show = self.session.deadline, self.session.progress
        self.network.train()
        with Phase(
            "training", total=self.steps, unit="steps", initial=self.state.step, show=show
        ) as phase:
            if self.state.step == 0 and self.evaluators.development is not None:
                self._evaluate(phase, select=False)
            start, began = self.state.step, time.perf_counter()
            self._limit_steps(phase)
            if (
                deadline is not None
                and "step_limit" not in self.session.record
                and began > deadline
            ):
                self.session.notify(
                    f"the time is over before training: it ends after its first {MEASURED_STEPS} steps"
                )
            while self.state.step < self.steps:
                self._step()
                phase.update()
                step = self.state.step
                if step in (MEASURED_STEPS, start + MEASURED_STEPS):
                    self._check_finite()  # waits for the device, whose steps are timed
                    self._forecast((time.perf_counter() - began) / (step - start), phase)
                if step % training.log_every == 0 or step == self.steps:
                    self._write_log(phase)
                at_end = step == self.steps and selection.last
                due = step % selection.every == 0 or at_end
                if self.evaluators.development is not None and due:
                    self._evaluate(phase, select=True)
                stopped = self._stopped()
                at_checkpoint = training.checkpoint_every and step % training.checkpoint_every == 0
                if stopped or (at_checkpoint and step < self.steps):
                    self._save()
                if stopped:
                    raise Interrupted(
                        f"stopped at step {step} of {self.steps}; go on with --resume"
                    )

    def _forecast(self, seconds: float, phase: Phase) -> None:
        """Say how long training takes, from the mean seconds of a step so far; limit the steps if there is a deadline.

        A limit is computed once in a run, at a fixed step, and recorded: a resumed run takes the
        same steps.
        """
        step, now, deadline = self.state.step, time.perf_counter(), self.session.deadline
        seconds += self._evaluation_seconds / self.recipe.selection.every
        if (
            step == MEASURED_STEPS
            and deadline is not None
            and "step_limit" not in self.session.record
        ):
            fitting = step + max(0, int((deadline - now) / seconds))
            steps = torch.tensor(
                float(min(fitting, self.steps)) if self.main else 0.0,
                device=self.accelerator.device,
            )
            self.session.note(
                step_limit=int(self.accelerator.reduce(steps, "sum"))
            )  # the main process's clock counts
        self._limit_steps(phase)
        if step < self.steps:
            expected = now - self._clock + seconds * (self.steps - step)
            self.session.notify(f"training takes about {about(expected)}: {self.steps:,} steps")
        elif deadline is not None:
            self.session.notify(f"the time is over: training ends after step {step}")

    def _limit_steps(self, phase: Phase) -> None:
        """Apply the limit, from the step at which it was computed."""
        if "step_limit" in self.session.record and self.state.step >= MEASURED_STEPS:
            self.steps = min(self.steps, self.session.record["step_limit"])
            phase.total = self.steps

    def _step(self) -> None:
        state, device, precision = (
            self.state,
            self.accelerator.device,
            self.recipe.training.precision,
        )
        rows = self.sampler.batch(state.step)
        share, rank = len(rows) // self.accelerator.num_processes, self.accelerator.process_index
        batch = self.collator(rows[rank * share : (rank + 1) * share]).to(device)
        with autocast(precision, device):
            loss, values, reports = self.model(batch, state.step)
        self.scaler.scale(loss).backward()
        self._count({"loss": loss, **values, **reports})
        if device.type == "cpu":
            self._check_finite()  # elsewhere it would wait for the device at every step
        self.scaler.unscale_(self.optimizer)
        most = self.recipe.optimizer.max_grad_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), most)
        if self.scaler.is_enabled():
            norm = norm.nan_to_num(
                posinf=0.0
            )  # a skipped step, as fp16 overflowed; a checkpoint needs numbers
        self._count({"grad_norm": norm})
        factor = rate_factor(self.recipe.schedule, state.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        state.step += 1

    def _count(self, values: dict[str, Any]) -> None:
        """Add values to the running sums, which stay on the device until the log is written.

        Each name has its own count: a rare view is not in every batch.
        """
        sums, counts = self.state.sums, self.state.counts
        for name, value in values.items():
            sums[name] = sums.get(name, 0.0) + value.detach()
            counts[name] = counts.get(name, 0) + 1

    def _check_finite(self) -> None:
        wrong = [name for name, value in self.state.sums.items() if not math.isfinite(float(value))]
        if not (failed := [name for name in ("loss", "grad_norm") if name in wrong]):
            return
        losses, latest = ", ".join(n for n in wrong if n not in failed), self.checkpoints.latest()
        last_good = (
            f"the last good checkpoint is {latest}" if latest else "there is no checkpoint yet"
        )
        raise OpencseError(
            f"the {failed[0]} is not finite by step {self.state.step} (loss {losses or 'sum'}); {last_good}",
            "Lower the learning rate (--set optimizer.lr=…), or use --set training.precision=fp32.",
        )

    def _write_log(self, phase: Phase) -> None:
        self._check_finite()
        state = self.state
        means = {name: float(value) / state.counts[name] for name, value in state.sums.items()}
        seconds = round(time.perf_counter() - self._clock, 2)
        self._append({**means, "lr": self.optimizer.param_groups[0]["lr"], "seconds": seconds})
        phase.details |= {"loss": f"{means['loss']:.4f}"}
        state.sums, state.counts = {}, {}

    def _append(self, values: dict[str, Any]) -> None:
        if self.main:
            with self.log_path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": self.state.step, **values}) + "\n")

    def _evaluate(self, phase: Phase, select: bool) -> None:
        """Compute the development score, and save the weights if it is the best so far."""
        self._check_finite()
        began = time.perf_counter()
        with timed("development scores"):
            score = self.evaluators.development_score() if self.main else 0.0
        self._evaluation_seconds = time.perf_counter() - began
        state = self.state
        watched = [evaluator.scores() for evaluator in self.evaluators.watch] if self.main else []
        self._append(
            {"dev": score, **{name: value for scores in watched for name, value in scores.items()}}
        )
        if not select:
            state.first_score = score
        elif state.best_score is None or score > state.best_score:
            state.best_score, state.best_step = score, state.step
            if self.main:
                # Only the encoder is exported; the modules of the losses can be as large.
                save_weights(self.network.encoder, self.best_path)
        best = (
            {}
            if state.best_score is None
            else {"best": f"{state.best_score:.2f}@{state.best_step}"}
        )
        phase.details |= {"dev": f"{score:.2f}", **best}
        self.network.train()

    def _stopped(self) -> bool:
        """Return whether any process is to stop; one that went on while another saves would wait for it for ever."""
        if not self._distributed:
            return self.stop.received
        flag = torch.tensor(float(self.stop.received), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, "sum") > 0)

    def _save(self) -> None:
        self._check_finite()
        self.state.seconds = time.perf_counter() - self._clock
        self.state.scaler = self.scaler.state_dict()
        self.state.sums = {name: float(value) for name, value in self.state.sums.items()}
        states = all_random_states(self.accelerator)
        if self.main:
            self.checkpoints.save(self.network, self.optimizer, states, self.state)
        self.accelerator.wait_for_everyone()

    def _finish(self) -> TrainingOutcome:
        state = self.state
        selected = state.best_score is not None  # else there was no evaluation after step 0
        if self.main and selected:
            load_weights(self.network.encoder, self.best_path)
        seconds = time.perf_counter() - self._clock
        best_step = state.best_step if selected else None
        return TrainingOutcome(state.step, best_step, state.best_score, state.first_score, seconds)

    def _freeze_unused(self) -> None:
        """Freeze the parameters that do not affect the loss, found by a step on two rows that is thrown away.

        With several processes, such parameters (an unused pooler) would stall the training, which
        waits for their gradients. The step also finds mistakes before any time is spent. The random
        state does not change.
        """
        auxiliary = (
            self.network.head.auxiliary
        )  # some losses keep vectors and counts from step to step
        weights = dict(auxiliary.named_parameters())
        memory = {
            name: value.clone()
            for name, value in auxiliary.state_dict().items()
            if name not in weights
        }
        with same_random_state(self.accelerator.device):
            batch = self.collator(self.sampler.batch(0)[:2]).to(self.accelerator.device)
            self.network.train()
            loss, _, _ = self.network(batch)
            loss.backward()
        for parameter in self.network.parameters():
            if parameter.grad is None:
                parameter.requires_grad_(False)
            parameter.grad = None
        auxiliary.load_state_dict(memory, strict=False)


def drop_lines_after(path: Path, step: int) -> None:
    """Keep the lines of a log up to a step, after which a run goes on; the last line of a killed one is incomplete."""
    lines = []
    for line in (
        path.read_text(encoding="utf-8", errors="replace").split("\n")
        if step and path.is_file()
        else ()
    ):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            lines += [line + "\n"] if json.loads(line)["step"] <= step else []
    write_text(path, "".join(lines))


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


def adamw(
    network: Network, settings: Optimizer, block: Block | None = None
) -> torch.optim.Optimizer:
    """Return AdamW for the parameters of a network that are trained; each group has its rate at the peak as `peak`."""
    own_rate = {
        id(p): module.learning_rate
        for module in network.head.modules_by_loss.values()
        if module.learning_rate is not None
        for p in module.parameters()
    }
    if block is not None and (trained := block_of(network.encoder)) is not None:
        own_rate |= {id(p): block.copy_lr for p in trained.copy.parameters()}
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for parameter in network.parameters():
        if parameter.requires_grad:
            # Only matrices decay: nothing speaks for biases and LayerNorm gains near 0.
            decay = settings.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((own_rate.get(id(parameter), settings.lr), decay), []).append(
                parameter
            )
    parameters = [
        {"params": members, "peak": rate, "weight_decay": decay}
        for (rate, decay), members in groups.items()
    ]
    if settings.name == "adamw_transformers":
        return TransformersAdamW(parameters, lr=settings.lr, betas=settings.betas, eps=settings.eps)
    return torch.optim.AdamW(
        parameters, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True
    )


def warmup_steps(schedule: Schedule, steps: int) -> int:
    """Return in how many steps of a run the learning rate rises."""
    if isinstance(schedule.warmup, int):
        return schedule.warmup
    return math.ceil(schedule.warmup * steps)


def rate_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Return the learning rate at a step, divided by the peak rate.

    Args:
        schedule: Kind and warm-up.
        step: The optimiser step, from 0.
        steps: Number of steps of the run.

    Returns:
        A factor in [0, 1]; `linear` reaches 0 at `step == steps`.
    """
    warmup = warmup_steps(schedule, steps)
    if step < warmup:
        return step / warmup
    if schedule.kind == "constant":
        return 1.0
    return max((steps - step) / max(steps - warmup, 1), 0.0)
