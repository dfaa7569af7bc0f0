"""The choice of the device for all computation."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import launched_processes

if TYPE_CHECKING:
    from accelerate import PartialState

_LAUNCH = "Start several processes with `torchrun --nproc_per_node 2 -m opencse train …`."


def choose_device() -> torch.device:
    """Return the device for training, evaluation, mining and probing.

    It is the one of `use_device`, or the choice of accelerate: the accelerator of this process, or the CPU. No state of
    accelerate is made, which would fix the device for the process.
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
        name: A device of PyTorch: `cpu`, `cuda`, `cuda:1`, `mps`, `xpu`; `auto` changes nothing. Processes started by
            accelerate keep their own accelerators.

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
            raise OpencseError(f"--device {name}: PyTorch finds no such device", "Use --device auto or cpu.")
        kind: Any = getattr(torch, device.type, None)
        count = kind.device_count() if hasattr(kind, "device_count") else 1
        if device.index is not None and device.index >= count:
            raise OpencseError(f"--device {name}: there are only {count}", "Count them from 0.")
    if device.type == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    if device.type == "cpu" or device.index is not None or "LOCAL_RANK" not in os.environ:
        os.environ["ACCELERATE_TORCH_DEVICE"] = str(device)
    return device


def join_processes(timeout: timedelta) -> PartialState:
    """Meet the other processes that a launcher started, and return accelerate's state of them all.

    accelerate lets processes on a CPU work together only where it is told to use the CPU.

    Args:
        timeout: How long to wait for the others.

    Raises:
        OpencseError: The launcher, accelerate and PyTorch disagree about the number of processes.
    """
    from accelerate import PartialState

    launched = launched_processes()
    state = PartialState(cpu=launched > 1 and choose_device().type == "cpu", timeout=timeout)
    if (joined := world_size()) != launched:
        raise OpencseError(f"the launcher started {launched} processes, but PyTorch sees {joined}", _LAUNCH)
    if launched == 1 and "MASTER_PORT" in os.environ and "WORLD_SIZE" not in os.environ:
        raise OpencseError(
            "MASTER_PORT is set, as for several processes, but one was started (as `accelerate launch --cpu` does)",
            f"{_LAUNCH} For one process, `unset MASTER_PORT`.",
        )
    return state


def world_size() -> int:
    """Return the number of processes that compute one loss together.

    Raises:
        OpencseError: accelerate, which divides the batches among the processes, knows of another number.
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


def device_name(device: torch.device) -> str:
    """Return the name of a device for users: `cuda:0 (NVIDIA H100)`, `cpu (AMD EPYC, 2 threads)`."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return f"cpu ({_processor()}, {threads} thread{'s' if threads > 1 else ''})"
    return str(device)


def _processor() -> str:
    with contextlib.suppress(OSError):  # other systems than Linux
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^model name\s*: (.+)", text, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine()
