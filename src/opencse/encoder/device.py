"""One choice of device for everything that computes."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from pathlib import Path
from typing import Any

import torch

from opencse.errors import OpencseError

AUTO = "auto"


def choose_device(name: str = AUTO) -> torch.device:
    """Return the device to compute on: the one answer for training, evaluation, mining and probing.

    Args:
        name: `auto` for what `accelerate` finds (the accelerator of this process, or the CPU), or a device that PyTorch
            knows: `cpu`, `cuda`, `cuda:1`, `mps`, `xpu`.

    Raises:
        OpencseError: There is no such device here.
    """
    if name == AUTO:
        return _detected()
    try:
        device = torch.device(name)
    except RuntimeError:
        raise OpencseError(
            f"--device {name}: no such kind of device", "Use auto, cpu, cuda, cuda:1, mps or xpu."
        ) from None
    if device.type not in ("cpu", "meta"):
        found = _detected()
        if found.type != device.type:
            raise OpencseError(f"--device {name}: PyTorch finds no such device here", "Use --device auto or cpu.")
        if device.index is not None and device.index >= _count(device.type):
            raise OpencseError(f"--device {name}: there are only {_count(device.type)}", "Count them from 0.")
    return device


def use_device(name: str) -> torch.device:
    """Make a device what `auto` stands for, here, in processes that this one starts, and in accelerate.

    Args:
        name: As for `choose_device`. Of several processes that accelerate started each keeps its own accelerator.

    Raises:
        OpencseError: There is no such device here.
    """
    device = choose_device(name)
    if name == AUTO:
        return device
    if device.type == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    if device.type == "cpu" or device.index is not None or "LOCAL_RANK" not in os.environ:
        os.environ["ACCELERATE_TORCH_DEVICE"] = str(device)
    return device


def device_name(device: torch.device) -> str:
    """What a user would call the device: `cuda:0 (NVIDIA H100)`, `cpu (AMD EPYC, 2 threads)`."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return f"cpu ({processor_name()}, {threads} thread{'s' if threads > 1 else ''})"
    return str(device)


def processor_name() -> str:
    """The name of the processor, such as `AMD EPYC`."""
    return processor_fields().get("model name") or platform.processor() or platform.machine()


@functools.cache
def processor_fields() -> dict[str, str]:
    """What Linux says about the first core, by name; empty on other systems."""
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if not name.strip():
                break  # the next core
            fields[name.strip()] = value.strip()
    return fields


def _detected() -> torch.device:
    """Accelerate's own detection, without setting up its state: that would fix the device for the whole process."""
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    if named := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        return torch.device(named)
    if parse_flag_from_env("ACCELERATE_USE_CPU"):
        return torch.device("cpu")
    device: torch.device = object.__new__(PartialState).default_device
    if device.type == "cuda" and int(os.environ.get("LOCAL_RANK", -1)) >= 0:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))  # one process for each
    return device


def _count(kind: str) -> int:
    module: Any = getattr(torch, kind, None)
    return int(module.device_count()) if hasattr(module, "device_count") else 1
