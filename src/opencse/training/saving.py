"""Checkpoints while a run trains, the last one when it is interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from opencse.foundation.errors import Interrupted
from opencse.foundation.progress import LOG
from opencse.foundation.tensors import move
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.checkpoint import all_random_states, moments_of
from opencse.training.log import check_finite


class SaveCheckpoints(TrainingCallback):
    """Writes a checkpoint every `training.checkpoint_every` steps, and one when the run is interrupted."""

    def __init__(self) -> None:
        self._stop_vote = StopVote()

    def on_step_end(self, run: ActiveRun, values: dict[str, Tensor]) -> None:
        """Write a checkpoint if one is due.

        Raises:
            Interrupted: The process received SIGINT or SIGTERM.
        """
        interrupted = self._stop_vote(run)
        every = run.recipe.training.checkpoint_every
        due = every > 0 and run.step % every == 0 and run.step < run.steps
        if interrupted or due:
            save_checkpoint(run)
        if interrupted:
            raise Interrupted(f"stopped at step {run.step} of {run.steps}; continue with --resume")


def save_checkpoint(run: ActiveRun) -> None:
    """Write a checkpoint; every process must call this."""
    check_finite(run)
    state = run.state
    state.seconds = run.seconds
    state.scaler = run.scaler.state_dict()
    state.sums = {name: float(value) for name, value in state.sums.items()}
    random_states = all_random_states(run.session.accelerator)
    run.gather_weights()
    path = _write(run, random_states)
    if run.main:
        LOG.debug("wrote %s", path)
        run.call("on_save", path)
    run.session.accelerator.wait_for_everyone()


def _write(run: ActiveRun, random_states: list[Tensor]) -> Path | None:
    """Write the files of a checkpoint; return its folder in the processes that wrote to it."""
    main = run.main
    if run.sharded is None:
        if not main:
            return None
        moments = moments_of(run.optimizer)
    elif run.session.shares_folder:
        return run.checkpoints.save_shards(
            run.sharded.trained, run.optimizer, random_states, run.state, main=main
        )
    else:
        # Machines with folders of their own: the first one keeps the complete tensors.
        moments = moments_of(run.optimizer)
        if not main:
            return None
    return run.checkpoints.save(run.network, moments, random_states, run.state)


class StopVote:
    """Lets all processes stop after the same step if one of them received a signal.

    One that continued while another saves would wait forever. On an accelerator, the vote of a step
    is read after the next one, because reading it at once would wait for all work on the device.
    """

    def __init__(self) -> None:
        self._before: tuple[Tensor, Any] | None = None

    def __call__(self, run: ActiveRun) -> bool:
        """Return whether to stop; every process must call this after every step."""
        accelerator = run.session.accelerator
        if accelerator.num_processes == 1:
            return run.interrupted.received
        flag = torch.tensor(float(run.interrupted.received), device="cpu")
        votes = accelerator.reduce(move(flag, accelerator.device), "sum")
        if accelerator.device.type == "cpu":
            return bool(votes > 0)

        before = self._before
        self._before = _to_host(votes)
        if before is None:
            return False
        on_host, copied = before
        copied.synchronize()
        return bool(on_host > 0)


def _to_host(value: Tensor) -> tuple[Tensor, Any]:
    """Start copying a number to the host; return the copy, and the event that says when it is there."""
    on_host = torch.empty((), dtype=value.dtype, pin_memory=True)
    on_host.copy_(value, non_blocking=True)
    copied = torch.get_device_module(value.device).Event()
    copied.record()
    return on_host, copied
