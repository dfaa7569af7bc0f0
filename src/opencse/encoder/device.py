"""Where and how computation runs: the device, the processes, fp32 or bf16."""

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


# Time for all processes to start; one may wait 2.4 times as long.
_MEETING = timedelta(minutes=5)
_LAUNCH = "Start several processes with `torchrun --nproc_per_node 2 -m opencse train …`."


def choose_device() -> torch.device:
    """Return the device for training, evaluation, mining and probing.

    It is the one of `use_device`, or the choice of accelerate: the accelerator of this process, or
    the CPU. It creates no state of accelerate, which would fix the device for the process.
    """
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    named = os.environ.get("ACCELERATE_TORCH_DEVICE")
    if named:
        wanted = torch.device(named)
        if wanted.type not in ("cpu", "meta") and (wanted.index or 0) >= _count(wanted):
            raise OpencseError(
                f"the environment variable ACCELERATE_TORCH_DEVICE is {named!r:.80}, a device that "
                "PyTorch does not find",
                "Correct it, or `unset ACCELERATE_TORCH_DEVICE`.",
            )
        return wanted
    if parse_flag_from_env("ACCELERATE_USE_CPU"):
        return torch.device("cpu")
    # An object without __init__ has the default device, but is not the shared state.
    device: torch.device = object.__new__(PartialState).default_device
    local_rank = int(os.environ.get("LOCAL_RANK", -1))
    if device.type == "cuda" and local_rank >= 0:
        # One process for each GPU.
        return torch.device("cuda", local_rank)
    return device


def _count(device: torch.device) -> int:
    """Return the number of devices of a kind that this machine has."""
    kind: Any = getattr(torch, device.type, None)
    if not hasattr(kind, "device_count") or not kind.is_available():
        return 0
    return int(kind.device_count())


def use_device(name: str) -> torch.device:
    """Make `choose_device` return a device in this process, its child processes and accelerate.

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
    """Wait for the other processes that a launcher started, and return accelerate's state.

    accelerate lets processes on a CPU work together only if it is told to use the CPU.

    Raises:
        OpencseError: The launcher, accelerate and PyTorch disagree about the number of processes.
    """
    from accelerate import PartialState

    launched = launched_processes()
    # Also checks the device that a variable names, which accelerate takes as it is.
    device = choose_device()
    state = PartialState(cpu=launched > 1 and device.type == "cpu", timeout=_MEETING)
    joined = world_size()
    if joined != launched:
        raise OpencseError(
            f"the launcher started {launched} processes, but PyTorch sees {joined}", _LAUNCH
        )
    if launched == 1 and "MASTER_PORT" in os.environ and "WORLD_SIZE" not in os.environ:
        raise OpencseError(
            "MASTER_PORT is set, as for several processes, but one was started "
            "(as `accelerate launch --cpu` does)",
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

    world = 1
    if torch.distributed.is_initialized():
        world = torch.distributed.get_world_size()
    divided = PartialState._shared_state.get("num_processes", world)
    if divided != world:
        raise OpencseError(
            f"PyTorch sees {world} processes, but accelerate, which divides the batches among "
            f"them, {divided}",
            "On a CPU, set ACCELERATE_USE_CPU=true, or `use_cpu=True` in the arguments of a trainer.",
        )
    return world


ChosenPrecision = Literal["fp32", "bf16"]
# Processor capabilities, by PyTorch's names, with which bf16 at least halves the time of fp32.
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "sve_bf16")
# With narrower hidden states bf16 is slower even there: conversions outweigh the products.
_LEAST_WIDTH = 128

NO_AUTOCAST = ("deberta",)
"""Model types whose attention fails under autocast: it masks a type with another's least value."""


def bfloat16_copy(module: nn.Module) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a transformer module with bfloat16 parameters, as a function with float32 outputs.

    The original is never touched: casting it in place would drop the gradient accumulators that
    distributed training hooks into. Pooling and later modules need float32.
    """
    low = copy.deepcopy(module).requires_grad_(False).eval()
    # Buffers, such as rotary frequencies, stay in float32.
    for parameter in low.parameters():
        if parameter.dtype == torch.float32:
            parameter.data = parameter.data.to(torch.bfloat16)

    def run(features: dict[str, Any]) -> dict[str, Any]:
        return {name: _to_float32(value) for name, value in low(features).items()}

    return run


def _to_float32(value: Any) -> Any:
    """Cast a tensor, or a sequence of tensors (all hidden layers), to float32."""
    if isinstance(value, Tensor):
        # Token ids and masks stay integers.
        if value.dtype in (torch.bfloat16, torch.float16):
            return value.float()
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float32(item) for item in value)
    return value


_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return the context for the forward passes of training; compute the loss itself in fp32."""
    return torch.autocast(device.type, _DTYPES[precision], enabled=precision != "fp32")


def same_random_state(device: torch.device) -> AbstractContextManager[None]:
    """Return a context that restores the random generators of the CPU and of one device."""
    if device.type in ("cpu", "meta"):
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device], device_type=device.type)


def resolve_precision(requested: str, config: Any, device: str | torch.device) -> Any:
    """Return the requested precision, or for `auto` the faster one of bf16 and fp32 on a device.

    Args:
        requested: A precision, or `auto`.
        config: Configuration of the model: a transformers configuration, or its values by name.
        device: Device of the model.
    """
    if requested != "auto":
        return requested
    device = torch.device(device)
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        fast = _cpu_is_faster_in_bf16(config)
    else:
        fast = device.type != "meta"
    return "bf16" if fast else "fp32"


def _cpu_is_faster_in_bf16(config: Any) -> bool:
    values = config if isinstance(config, Mapping) else config.to_dict()
    width = values.get("hidden_size", values.get("dim", _LEAST_WIDTH))
    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    has_instructions = any(capabilities.get(name) for name in _INSTRUCTIONS)
    return width >= _LEAST_WIDTH and has_instructions


def describe(requested: str, config: Any, device: torch.device) -> str:
    """Return a line with device and precision of a model, the first output of many commands."""
    details = ""
    if device.type == "cpu":
        threads = torch.get_num_threads()
        details = " (1 thread)"
        if threads > 1:
            details = f" ({threads} threads)"
    elif device.type == "cuda":
        details = f" ({torch.cuda.get_device_name(device)})"
    precision = resolve_precision(requested, config, device)
    reason = ""
    if requested == "auto":
        reason = " (the faster one here)"
    return f"on {device}{details}, {precision}{reason}"


def model_config(model: Any) -> Any:
    """Return the transformers configuration of a `SentenceTransformer`; empty if there is none."""
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "to_dict"):
            return module.config
    return {}
