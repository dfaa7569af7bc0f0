"""Training steps on the device `meta`, whose tensors have no values, in place of a GPU.

An operation that a GPU would have to finish before the host goes on, because its result decides on a shape or a branch,
raises an error there. What a GPU does without an error, but waits for too, is recorded.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from opencse.training import train as train_module
from opencse.training.checkpoint import TrainingState
from opencse.training.loop import TrainingLoop
from opencse.training.network import Network
from opencse.training.session import TrainingSession

META = torch.device("meta")
_ROOT = Path(__file__).resolve().parents[2]
_aten = torch.ops.aten


class BlockingCopies(TorchDispatchMode):
    """Records copies of tensors from the CPU to the device that the host waits for.

    Args:
        found: Gets the lines that made them.
    """

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if self._blocks(func, args, kwargs, out):
            self.found.append(f"{func}: {_place()}")
        return out

    @staticmethod
    def _blocks(func: Any, args: Any, kwargs: Any, out: Any) -> bool:
        packet = func.overloadpacket
        if packet in (_aten._to_copy, _aten.to):
            return _on_cpu(args[0]) and out.device == META and not kwargs.get("non_blocking")
        if packet is _aten.copy_:
            waits = not (args[2] if len(args) > 2 else kwargs.get("non_blocking"))
            return _on_cpu(args[1]) and args[1].dim() > 0 and args[0].device == META and waits
        if packet in (_aten.index, _aten.index_put, _aten.index_put_):
            return args[0].device == META and any(_on_cpu(index) for index in args[1] if index is not None)
        return False


class TensorsFromLists(TorchFunctionMode):
    """Records tensors on the device that are made from Python's numbers, which the host waits for too.

    Args:
        found: Gets the lines that made them.
    """

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in (torch.tensor, torch.as_tensor, torch.Tensor.new_tensor) and out.device == META:
            self.found.append(f"{func.__name__}: {_place()}")
        return out


def _place() -> str:
    """The lines of this project that lead to an operation, the last first."""
    own = (str(_ROOT / "src"), str(_ROOT / "tests"))
    frames = [f for f in traceback.extract_stack() if f.filename.startswith(own) and f.filename != __file__]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-3:][::-1])


def _on_cpu(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "cpu"


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


def blocking_copies(loop: TrainingLoop, steps: int = 3) -> list[str]:
    """Train for some steps on `meta`; return what the host waited for after the first."""
    with _same_parameters():
        network = loop.network.to(META)
    one: Any = SimpleNamespace(device=META, num_processes=1, process_index=0)
    loop.accelerator, loop.state, loop.model = one, TrainingState(), network
    loop.optimizer = torch.optim.SGD([{"params": [*network.parameters()], "peak": 0.1}], lr=0.1)
    loop.precision = _FullPrecision(network)
    network.train()
    found: list[str] = []
    with FlopCounterMode(display=False), _without_autocast():
        loop._step()
        with BlockingCopies(found), TensorsFromLists(found):
            for _ in range(steps - 1):
                loop._step()
    return found


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
