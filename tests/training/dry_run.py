"""Training steps on the device `meta`, whose tensors have no values, in place of a GPU.

An operation that a GPU would have to finish before the host goes on, because its result decides on a shape or a branch,
raises an error there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from opencse.training import train as train_module
from opencse.training.checkpoint import TrainingState
from opencse.training.loop import TrainingLoop
from opencse.training.network import Network
from opencse.training.session import TrainingSession

META = torch.device("meta")


class _AboutToTrain(Exception):
    pass


@contextlib.contextmanager
def as_on_an_accelerator() -> Iterator[None]:
    """Prepare runs as for a device whose batches are laid out on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        begin, build = TrainingSession.__init__, train_module.term_modules

        def not_on_a_cpu(self: TrainingSession, *args: Any, **kwargs: Any) -> None:
            begin(self, *args, **kwargs)
            self.on_cpu = False

        patch.setattr(TrainingSession, "__init__", not_on_a_cpu)
        patch.setattr(train_module, "term_modules", lambda *args: build(*args[:-1], META))
        yield


def prepare(run: Any) -> TrainingLoop:
    """Call a function that trains, and return the loop that is about to run, as on an accelerator."""
    found: list[TrainingLoop] = []

    def capture(self: TrainingLoop) -> Any:
        found.append(self)
        raise _AboutToTrain

    with as_on_an_accelerator(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "run", capture)
        with pytest.raises(_AboutToTrain):
            run()
    return found[0]


def train_on_meta(loop: TrainingLoop) -> None:
    """Train for three steps on `meta`."""
    with _same_parameters():
        network = loop.network.to(META)
    one: Any = SimpleNamespace(device=META, num_processes=1, process_index=0)
    loop.accelerator, loop.state, loop.model = one, TrainingState(), network
    loop.optimizer = torch.optim.SGD([{"params": [*network.parameters()], "peak": 0.1}], lr=0.1)
    loop.precision = _FullPrecision(network)
    network.train()
    with FlopCounterMode(display=False), _without_autocast():
        for _ in range(3):
            loop._step()


@contextlib.contextmanager
def _same_parameters() -> Iterator[None]:
    """Let modules keep their parameter objects on `meta`, as on a GPU; terms refer to them."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


class _FullPrecision:
    """`MixedPrecision` in fp32, which `torch.autocast` does not offer for `meta`."""

    def __init__(self, network: Network) -> None:
        self._parameters = [p for p in network.parameters() if p.requires_grad]

    def forward(self) -> Any:
        return contextlib.nullcontext()

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def collect_gradients(self, optimizer: torch.optim.Optimizer, max_norm: float) -> torch.Tensor:
        return torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@contextlib.contextmanager
def _without_autocast() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
        patch.setattr(torch, "is_autocast_enabled", lambda *_: False)
        patch.setattr(torch, "get_autocast_dtype", lambda *_: torch.float32)
        yield
