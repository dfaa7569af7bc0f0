"""Checkpoints that hold everything, appear whole or not at all, and never unpickle.

A checkpoint is the folder `checkpoints/step-000500`: `network.safetensors` (encoder, projector, terms),
`optimizer.safetensors` (the moments), `random.safetensors` (generator states of every process) and `state.json` (step,
best score, running sums). The folder gets its name only when it is complete.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from opencse.errors import OpencseError
from opencse.io.files import replaced_file, replaced_folder


@dataclass
class Progress:
    """Where a run stands, apart from weights and moments.

    Attributes:
        step: Optimiser steps done.
        first_score: The development score before the first step.
        best_step: The step with the best development score so far.
        best_score: That score.
        stale: Evaluations since then.
        seconds: Training time so far, over all resumptions.
        sums: Running sums since the last line of the log.
        counts: How many values each sum has.
        scaler: The loss scale of fp16.
    """

    step: int = 0
    first_score: float | None = None
    best_step: int = -1
    best_score: float | None = None
    stale: int = 0
    seconds: float = 0.0
    sums: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: Where they are kept.
        keep: How many.
        fingerprint: What a checkpoint must agree on to be resumed (recipe, corpus, backbone), by name.
    """

    def __init__(self, folder: Path, keep: int, fingerprint: dict[str, str]) -> None:
        self.folder, self.keep, self.fingerprint = folder, keep, fingerprint

    def latest(self) -> Path | None:
        """The newest complete checkpoint."""
        found = sorted(self.folder.glob("step-*"))
        return found[-1] if found else None

    def save(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, random_states: list[Tensor], progress: Progress
    ) -> Path:
        """Write a checkpoint, then drop the oldest ones over the number to keep."""
        target = self.folder / f"step-{progress.step:08d}"
        with replaced_folder(target) as temporary:
            save_weights(network, temporary / "network.safetensors")
            save_file(_moments(optimizer), temporary / "optimizer.safetensors")
            save_file({str(i): s for i, s in enumerate(random_states)}, temporary / "random.safetensors")
            state = {"progress": asdict(progress), "fingerprint": self.fingerprint}
            (temporary / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
        for old in sorted(self.folder.glob("step-*"))[: -self.keep]:
            shutil.rmtree(old)
        return target

    def load(
        self, path: Path, network: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[Progress, dict[str, Tensor]]:
        """Put a checkpoint back; give where the run stood and the generator states by process.

        Raises:
            OpencseError: The checkpoint belongs to another recipe, corpus or backbone.
        """
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        for name, value in self.fingerprint.items():
            if state["fingerprint"].get(name) != value:
                raise OpencseError(
                    f"{path}: was made with another {name}",
                    "Resume with what the run began with, or start anew with --overwrite.",
                )
        load_weights(network, path / "network.safetensors")
        _restore_moments(optimizer, load_file(path / "optimizer.safetensors"))
        return Progress(**state["progress"]), load_file(path / "random.safetensors")


def save_weights(network: nn.Module, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write all parameters and buffers as safetensors, in one step; shared tensors are written once."""
    state, seen = {}, set()
    for name, tensor in network.state_dict().items():
        pointer = (tensor.data_ptr(), tensor.shape)
        if tensor.numel() and pointer in seen:
            continue
        seen.add(pointer)
        state[name] = tensor.detach().cpu().contiguous()
    with replaced_file(path) as temporary:
        save_file(state, temporary, metadata=metadata)


def load_weights(network: nn.Module, path: Path) -> None:
    """Read what `save_weights` wrote; all must fit, but for the second names of shared tensors."""
    state = load_file(path)
    missing, unexpected = network.load_state_dict(state, strict=False)
    shared = {tensor.data_ptr() for name, tensor in network.state_dict().items() if name in state}
    lost = [n for n in missing if network.state_dict()[n].data_ptr() not in shared]
    if lost or unexpected:
        raise OpencseError(f"{path}: does not fit the network ({', '.join([*lost, *unexpected][:3])})")


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value.detach().cpu().contiguous() for index, s in states.items() for name, value in s.items()
    }


def _restore_moments(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    states: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        states.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
