"""Where and how computation runs: the device, the processes, and the choice between fp32 and bf16."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed
from torch import Tensor, nn

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import launched_processes

if TYPE_CHECKING:
    from accelerate import PartialState


_MEETING = timedelta(minutes=5)  # for all processes to start; one may wait 2.4 times as long
_LAUNCH = "Start several processes with `torchrun --nproc_per_node 2 -m opencse train …`."


def choose_device() -> torch.device:
    """Return the device for training, evaluation, mining and probing.

    It is the one of `use_device`, or the choice of accelerate: the accelerator of this process, or
    the CPU. No state of accelerate is made, which would fix the device for the process.
    """
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    if named := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        return torch.device(named)
    if parse_flag_from_env("ACCELERATE_USE_CPU"):
        return torch.device("cpu")
    device: torch.device = object.__new__(PartialState).default_device
    if device.type == "cuda" and int(os.environ.get("LOCAL_RANK", -1)) >= 0:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))  # one process for each GPU
    return device


def use_device(name: str) -> torch.device:
    """Make a device the choice of `choose_device`: in this process, in its child processes, and in accelerate.

    Args:
        name: A device of PyTorch: `cpu`, `cuda`, `cuda:1`, `mps`, `xpu`; `auto` changes nothing.
            Processes started by accelerate keep their own accelerators.

    Raises:
        OpencseError: This machine has no such device.
    """
    detected = choose_device()
    if name == "auto":
        return detected
    try:
        device = torch.device(name)
    except RuntimeError:
        raise OpencseError(
            f"--device {name}: no such kind of device", "Use auto, cpu, cuda, cuda:1, mps or xpu."
        ) from None
    if device.type not in ("cpu", "meta"):
        if detected.type != device.type:
            raise OpencseError(
                f"--device {name}: PyTorch finds no such device", "Use --device auto or cpu."
            )
        kind: Any = getattr(torch, device.type, None)
        count = kind.device_count() if hasattr(kind, "device_count") else 1
        if device.index is not None and device.index >= count:
            raise OpencseError(f"--device {name}: there are only {count}", "Count them from 0.")
    if device.type == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    if device.type == "cpu" or device.index is not None or "LOCAL_RANK" not in os.environ:
        os.environ["ACCELERATE_TORCH_DEVICE"] = str(device)
    return device


def join_processes() -> PartialState:
    """Meet the other processes that a launcher started, and return accelerate's state of them all.

    accelerate lets processes on a CPU work together only where it is told to use the CPU.

    Raises:
        OpencseError: The launcher, accelerate and PyTorch disagree about the number of processes.
    """
    from accelerate import PartialState

    launched = launched_processes()
    state = PartialState(cpu=launched > 1 and choose_device().type == "cpu", timeout=_MEETING)
    if (joined := world_size()) != launched:
        raise OpencseError(
            f"the launcher started {launched} processes, but PyTorch sees {joined}", _LAUNCH
        )
    if launched == 1 and "MASTER_PORT" in os.environ and "WORLD_SIZE" not in os.environ:
        raise OpencseError(
            "MASTER_PORT is set, as for several processes, but one was started (as `accelerate launch --cpu` does)",
            f"{_LAUNCH} For one process, `unset MASTER_PORT`.",
        )
    return state


def world_size() -> int:
    """Return the number of processes that compute one loss together.

    Raises:
        OpencseError: accelerate, which divides the batches among the processes, knows of another
            number.
    """
    from accelerate import PartialState

    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    divided = PartialState._shared_state.get("num_processes", world)
    if divided != world:
        raise OpencseError(
            f"PyTorch sees {world} processes, but accelerate, which divides the batches among them, {divided}",
            "On a CPU, set ACCELERATE_USE_CPU=true, or `use_cpu=True` in the arguments of a trainer.",
        )
    return world


ChosenPrecision = Literal["fp32", "bf16"]
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "sve_bf16")
"""Capabilities of processors, by PyTorch's names, with which bf16 takes half of the time of fp32 or less."""
_LEAST_WIDTH = 128
"""Width of hidden states below which bf16 is slower even there: conversions take longer than products."""

NO_AUTOCAST = ("deberta",)
"""Model types whose attention fails under autocast: it masks numbers of one type by the least one of another."""


def bfloat16_copy(module: nn.Module) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a transformer module with its float32 parameters in bfloat16, as a function whose outputs are float32.

    The original is never touched: casting it in place would drop the gradient accumulators that
    distributed training hooks into. Pooling and later modules need float32.
    """
    low = copy.deepcopy(module).requires_grad_(False).eval()
    for parameter in low.parameters():  # not buffers, such as rotary frequencies
        if parameter.dtype == torch.float32:
            parameter.data = parameter.data.to(torch.bfloat16)
    return lambda features: {name: _to_float32(value) for name, value in low(features).items()}


def _to_float32(value: Any) -> Any:
    """Cast a tensor, or a sequence of tensors (all hidden layers), to float32."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float32(item) for item in value)
    return value


_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return the context for the forward passes of training; compute the loss itself in fp32."""
    return torch.autocast(device.type, _DTYPES[precision], enabled=precision != "fp32")


def same_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Return a context that leaves the generators of the CPU and of a device, and of no other one, as they were."""
    if device.type in ("cpu", "meta"):
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device], device_type=device.type)


def resolve_precision(requested: str, config: Any, device: str | torch.device) -> Any:
    """Return the requested precision, or for `auto` the faster one of bf16 and fp32 for a model on a device.

    Args:
        requested: A precision, or `auto`.
        config: Configuration of the model: a transformers configuration, or its values by name.
        device: Device of the model.
    """
    if requested != "auto":
        return requested
    device = torch.device(device)
    fast = device.type != "meta"
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        values = config if isinstance(config, Mapping) else config.to_dict()
        width = next(
            (values[name] for name in ("hidden_size", "dim") if name in values), _LEAST_WIDTH
        )
        able: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        fast = width >= _LEAST_WIDTH and any(able.get(name) for name in _INSTRUCTIONS)
    return "bf16" if fast else "fp32"


def describe(requested: str, config: Any, device: torch.device) -> str:
    """Return a line with device and precision of a model, the first output of many commands."""
    threads = torch.get_num_threads()
    details = {"cpu": f" ({threads} thread{'s' if threads > 1 else ''})"}
    if device.type == "cuda":
        details["cuda"] = f" ({torch.cuda.get_device_name(device)})"
    reason = " (the faster one here)" if requested == "auto" else ""
    return f"on {device}{details.get(device.type, '')}, {resolve_precision(requested, config, device)}{reason}"


def model_config(model: Any) -> Any:
    """Return the transformers configuration inside a `SentenceTransformer`; empty if there is none."""
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "to_dict"):
            return module.config
    return {}
