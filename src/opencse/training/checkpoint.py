"""Complete, atomic checkpoints that are read without unpickling.

A checkpoint is the folder `checkpoints/step-00000500`: `network.safetensors` (encoder, projector,
losses), `optimizer.safetensors` (the moments), `random.safetensors` (generator states of every
process), `state.json` (step, best score, running sums) and `checksums.json` of these. The folder
gets its name only when it is complete.

With `training.shard_weights`, weights and moments are in the folder `shards` instead, in a file for
each process, as PyTorch's `HuggingFaceStorageWriter` writes them: the names are `network.NAME` and
`optimizer.NUMBER.NAME`. Any number of processes can read them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from opencse.encoder.device import world_size
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import find_damage, replaced, write_checksums
from opencse.foundation.reading import read_json, regular_file, translate_errors
from opencse.foundation.tensors import tensors_hash
from opencse.foundation.toml_tables import decode
from opencse.training.optimizers import TransformersAdamW
from opencse.training.sharding import (
    ShardedNetwork,
    complete_tensor,
    like,
    read_shards,
    shard_sizes,
    weights_of,
    write_shards,
)

if TYPE_CHECKING:
    from accelerate import Accelerator

_DIGEST = "sha256"
_REMEDY = "Start again with --overwrite."
_CPU = torch.device("cpu")
_SHARDS = "shards"


@dataclass
class TrainingState:
    """The state of a run apart from weights and optimiser moments.

    Attributes:
        step: Optimiser steps done.
        first_score: The development score before the first step.
        best_step: The step with the best development score so far.
        best_score: That score.
        seconds: Training time so far, over all resumptions.
        sums: Running sums of logged values since the last line of the log.
        counts: Number of values in each sum.
        scaler: The loss scale of fp16.
    """

    step: int = 0
    first_score: float | None = None
    best_step: int = -1
    best_score: float | None = None
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: The folder with the checkpoints.
        fingerprint: Hashes and settings, by name, that a run must share with the checkpoint that it
            resumes.
        notify: Receives a line for each damaged checkpoint.
        keep: Number of checkpoints that are kept. With two, a damaged one costs only the steps
            since the one before it.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: dict[str, str],
        notify: Callable[[str], None] = lambda _: None,
        keep: int = 2,
    ) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self._notify = notify
        self._keep = keep

    def latest(self) -> Path | None:
        """Return the newest intact checkpoint; None if there are no checkpoints.

        Raises:
            OpencseError: There are checkpoints, but all are damaged.
        """
        wrong = None
        for path in sorted(self.folder.glob("step-*"), reverse=True):
            wrong = find_damage(path)
            if wrong is None:
                return path
            self._notify(f"{path} is damaged ({wrong}); the checkpoint before it is used")
        if wrong is not None:
            raise OpencseError(f"{self.folder}: every checkpoint is damaged ({wrong})", _REMEDY)
        return None

    def save(
        self,
        network: nn.Module,
        moments: Mapping[str, Tensor],
        random_states: list[Tensor],
        progress: TrainingState,
    ) -> Path:
        """Write a checkpoint, then remove the oldest ones; `moments` is what `moments_of` returns."""
        with self._new(progress.step) as temporary:
            save_weights(network, temporary / "network.safetensors")
            save_file(dict(moments), temporary / "optimizer.safetensors")
            self._complete(temporary, random_states, progress)
        return self._path(progress.step)

    def save_shards(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        random_states: list[Tensor],
        progress: TrainingState,
        *,
        main: bool,
    ) -> Path:
        """Write a checkpoint to which every process adds its part; all must call this, and share the folder.

        Args:
            network: The network, divided among the processes.
            optimizer: Its optimiser.
            random_states: The generators of all processes.
            progress: The state of the run.
            main: Whether this is the main process, which makes the folder and gives it its name.
        """
        tensors = {}
        for name, tensor in weights_of(network).items():
            tensors[f"network.{name}"] = tensor
        for name, tensor in _moments(optimizer).items():
            tensors[f"optimizer.{name}"] = tensor

        if main:
            with self._new(progress.step) as temporary:
                broadcast_object_list([temporary.name])
                write_shards(tensors, temporary / _SHARDS)
                self._complete(temporary, random_states, progress)
        else:
            shared = [""]
            broadcast_object_list(shared)
            write_shards(tensors, self.folder / shared[0] / _SHARDS)
        return self._path(progress.step)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    @contextmanager
    def _new(self, step: int) -> Iterator[Path]:
        """Yield a temporary folder that becomes the checkpoint of a step, then remove the oldest ones."""
        with replaced(self._path(step), folder=True) as temporary:
            yield temporary
        for old in sorted(self.folder.glob("step-*"))[: -self._keep]:
            shutil.rmtree(old)

    def _complete(
        self, temporary: Path, random_states: list[Tensor], progress: TrainingState
    ) -> None:
        """Write what every checkpoint has in addition to weights and moments."""
        by_process = {str(process): state for process, state in enumerate(random_states)}
        save_file(by_process, temporary / "random.safetensors")
        state = {"progress": asdict(progress), "fingerprint": self.fingerprint}
        (temporary / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
        write_checksums(temporary)

    def load(
        self,
        path: Path,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        device: torch.device = _CPU,
        process: int = 0,
        sharded: ShardedNetwork | None = None,
    ) -> TrainingState:
        """Restore network, optimiser and the generators of a process from a checkpoint; return the run's state.

        Every process must call this.

        Args:
            path: The checkpoint.
            network: The complete network.
            optimizer: The optimiser, of the divided network if there is one.
            device: The device of the generator.
            process: Number of this process.
            sharded: The trained copy of the network, if it is divided among the processes.

        Raises:
            OpencseError: The checkpoint belongs to another run, or was not written by one.
        """
        place = path / "state.json"
        content = read_json(place, _REMEDY)
        if content.get("fingerprint") != self.fingerprint:
            raise OpencseError(f"{place}: was written by another run", _REMEDY)
        state = decode(TrainingState, content.get("progress"), f"{place}: progress")
        if (
            state.step < 0
            or state.counts.keys() != state.sums.keys()
            or not all(state.counts.values())
        ):
            raise OpencseError(f"{place}: was not written by a run", _REMEDY)
        if (path / _SHARDS).is_dir():
            _load_shards(path / _SHARDS, network, optimizer, sharded)
        else:
            load_weights(network, path / "network.safetensors")
            _restore_moments(optimizer, path / "optimizer.safetensors")
            if sharded is not None:
                sharded.scatter()
        _restore_generators(path / "random.safetensors", device, process, state.step)
        return state


def _restore_generators(path: Path, device: torch.device, process: int, step: int) -> None:
    """Give the generators of a process their states; new ones if other processes wrote the checkpoint."""
    with translate_errors(path, "the generator cannot be restored", _REMEDY, RuntimeError):
        states = _tensors(path)[0]
        if len(states) != world_size():
            # The seed of this process, and not again the masks of the first steps.
            place = np.random.SeedSequence([torch.initial_seed(), step])
            torch.manual_seed(int(place.generate_state(1)[0]))
            return
        generators = states[str(process)]
        size = torch.get_rng_state().numel()
        torch.set_rng_state(generators[:size])
        if device.type != "cpu":
            torch.get_device_module(device).set_rng_state(generators[size:], device)


def _load_shards(
    folder: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    sharded: ShardedNetwork | None,
) -> None:
    """Restore weights and moments that `Checkpoints.save_shards` wrote."""
    trained = network
    if sharded is not None:
        trained = sharded.trained
    tensors = {}
    for name, tensor in weights_of(trained).items():
        tensors[f"network.{name}"] = tensor

    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    states: dict[int, dict[str, Tensor]] = {}
    with translate_errors(folder, "does not fit the network", _REMEDY, IndexError, SafetensorError):
        for key, size in shard_sizes(folder).items():
            kind, _, place = key.partition(".")
            if kind != "optimizer":
                continue
            index, _, name = place.partition(".")
            # A moment is divided like its parameter; `step` is a single number.
            moment = torch.zeros(size)
            if len(size):
                moment = torch.zeros_like(parameters[int(index)])
            states.setdefault(int(index), {})[name] = moment
            tensors[key] = moment
        for number, state in states.items():
            if set(_expected(optimizer, state)) - set(state):
                raise ValueError(f"parameter {number}")
        read_shards(tensors, folder)
    _load_states(optimizer, states)
    if sharded is not None:
        sharded.gather()


def all_random_states(accelerator: Accelerator) -> list[Tensor]:
    """Return the states of the generators of every process as bytes (n,); all of them must call this.

    Each is the state of the CPU's generator, followed by that of the device.
    """
    device = accelerator.device
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    # Gathering works on the device; the generators take their states from the CPU.
    own = torch.cat(states).to(device)
    gathered = accelerator.gather(own[None])
    return [state.cpu() for state in gathered.unbind()]


def save_weights(network: nn.Module, path: Path) -> None:
    """Write all parameters and buffers as safetensors, in one step; shared tensors are written once."""
    state = {}
    seen = set()
    for name, tensor in network.state_dict().items():
        pointer = (tensor.data_ptr(), tensor.shape)
        if tensor.numel() and pointer in seen:
            continue
        seen.add(pointer)
        state[name] = tensor.detach().cpu().contiguous()
    with replaced(path) as temporary:
        save_file(state, temporary, metadata={_DIGEST: tensors_hash(state)})


def load_weights(network: nn.Module, path: Path) -> None:
    """Load weights that `save_weights` wrote.

    Raises:
        OpencseError: The file is missing or was changed, or its tensors do not fit the network.
    """
    check_weights(path)
    with translate_errors(path, "does not fit the network", _REMEDY, RuntimeError):
        load_model(network, path)


def check_weights(path: Path) -> None:
    """Check a file that `save_weights` wrote.

    Raises:
        OpencseError: The file is missing, or was changed after it was written.
    """
    state, metadata = _tensors(path)
    if metadata.get(_DIGEST) != tensors_hash(state):
        raise OpencseError(f"{path}: was changed after it was written", _REMEDY)


def _tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    path = regular_file(path)
    with (
        translate_errors(path, "not a complete safetensors file", _REMEDY, SafetensorError),
        safe_open(path, "pt") as file,
    ):
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    raise AssertionError


def moments_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the tensors of an optimiser's state by number of parameter and name, on the CPU.

    If the parameters are divided among the processes, every process must call this.
    """
    complete = {}
    for name, moment in _moments(optimizer).items():
        complete[name] = complete_tensor(moment).cpu().contiguous()
    return complete


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the tensors of an optimiser's state by number of parameter and name, as they are."""
    moments = {}
    for index, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                moments[f"{index}.{name}"] = value.detach()
    return moments


def _restore_moments(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Give an optimiser its state of a checkpoint: a few tensors by name for each parameter."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    tensors, _ = _tensors(path)
    states: dict[int, dict[str, Tensor]] = {}
    with translate_errors(path, "does not fit the network", _REMEDY, IndexError):
        for key, tensor in tensors.items():
            index, _, name = key.partition(".")
            states.setdefault(int(index), {})[name] = tensor
        for place, state in states.items():
            for name in _expected(optimizer, state):
                # `step` is a single number.
                if state[name].ndim and state[name].shape != parameters[place].shape:
                    raise ValueError(f"parameter {place}")
                if state[name].ndim:
                    state[name] = like(state[name], parameters[place])
    _load_states(optimizer, states)


def _load_states(optimizer: torch.optim.Optimizer, states: dict[int, dict[str, Tensor]]) -> None:
    """Give an optimiser the tensors of each parameter; its learning rates are those of the recipe."""
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})


def _expected(optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> list[str]:
    """Return the names of the tensors that an optimiser needs, in the shape of their parameter."""
    if isinstance(optimizer, torch.optim.AdamW | TransformersAdamW):
        return ["step", "exp_avg", "exp_avg_sq"]
    # Of other optimisers' tensors, those with these names have it.
    return [name for name in state if name.startswith("exp_") or name == "momentum_buffer"]
