"""`precision = "auto"`: bf16 or fp32, whichever is faster on this machine.

Processors with bf16 units multiply two to four times as fast in bf16; those without emulate it and are slower than in
fp32. No flag distinguishes them reliably: some that report `avx512_bf16` are still slower in bf16. So a few
products with the shapes of the model are timed, once per machine, and the result is cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F

from opencse.encoder.device import device_name, processor_fields, processor_name
from opencse.foundation.cache import cache_root
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json

ChosenPrecision = Literal["fp32", "bf16"]

_GAIN = 0.9
"""Maximum time of bf16 relative to fp32 for choosing bf16, which is less exact."""
_SECONDS = 0.25
_TOKENS = (16, 256)
"""Rows of the timed products; the small one first, because emulated bf16 can be a hundred times slower."""
_MAX_RATIO = 4.0
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_INNER_WIDTHS = ("intermediate_size", "hidden_dim", "d_ff", "n_inner", "encoder_ffn_dim")


@dataclass(frozen=True)
class PrecisionChoice:
    """The result of `precision = "auto"`.

    Attributes:
        precision: `fp32` or `bf16`.
        ratio: Time of the probed products in bf16, divided by that in fp32; None if nothing was timed.
    """

    precision: ChosenPrecision
    ratio: float | None = None

    @property
    def reason(self) -> str:
        """The reason for the choice, for the user."""
        if self.ratio is None:
            return "chosen for the accelerator"
        return f"chosen by timing: matrix products in bf16 take {self.ratio:.2f} of the time of fp32"


def choose_precision(config: Any, device: str | torch.device) -> PrecisionChoice:
    """Choose between bf16 and fp32 for a model on a device.

    On a CPU, the first call for a processor, a version of PyTorch and the shapes of a model takes about 0.3 s; the
    result is cached (`opencse.foundation.cache.cache_root`). An accelerator gets bf16 if it supports it.

    Args:
        config: Configuration of the model: a transformers configuration, or its values by name.
        device: Device of the model.
    """
    device = torch.device(device)
    if device.type != "cpu":
        return PrecisionChoice("bf16" if _accelerator_has_bf16(device) else "fp32")
    width, inner = matrix_widths(config)
    key: dict[str, Any] = {
        "processor": processor_id(),
        "torch": torch.__version__,
        "width": width,
        "inner_width": inner,
    }
    name = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=16).hexdigest()
    path = cache_root() / "precision" / f"{name}.json"
    ratio = _read(path)
    if ratio is None:
        ratio = bf16_time_ratio(width, inner)
        with contextlib.suppress(OSError, OpencseError):  # a read-only cache
            write_json(path, key | {"bf16_to_fp32_time": ratio})
    return PrecisionChoice("bf16" if ratio <= _GAIN else "fp32", ratio)


def resolve_precision(requested: str, config: Any, device: str | torch.device) -> Any:
    """Return the requested precision, or the chosen one for `auto`."""
    return choose_precision(config, device).precision if requested == "auto" else requested


def describe(requested: str, config: Any, device: torch.device) -> str:
    """Return a line with device and precision of a model and the reason, the first output of many commands."""
    if requested != "auto":
        return f"on {device_name(device)}, {requested}"
    choice = choose_precision(config, device)
    return f"on {device_name(device)}, {choice.precision} ({choice.reason})"


def model_config(model: Any) -> Any:
    """Return the transformers configuration inside a `SentenceTransformer`; empty if there is none."""
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "to_dict"):
            return module.config
    return {}


def matrix_widths(config: Any) -> tuple[int, int]:
    """Return the widths of hidden states and feed-forward layers, the shapes of most matrices of a model."""

    def first(names: tuple[str, ...], default: int) -> int:
        for name in names:
            value = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
            if isinstance(value, int) and value > 0:
                return value
        return default

    width = first(_WIDTHS, 384)
    return width, first(_INNER_WIDTHS, 4 * width)


def bf16_time_ratio(width: int, inner: int) -> float:
    """Time a few products in both precisions on one thread; return the best time of bf16 divided by that of fp32.

    One thread gives the same ratio as several, and is less disturbed by other processes.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _time_ratio(width, inner, time.perf_counter() + _SECONDS)
    finally:
        torch.set_num_threads(threads)


def _time_ratio(width: int, inner: int, deadline: float) -> float:
    ratio = 1.0
    for tokens in _TOKENS:
        operands = {
            kind: [_operands(tokens, *shape, kind) for shape in ((width, width), (width, inner), (inner, width))]
            for kind in (torch.float32, torch.bfloat16)
        }
        best = dict.fromkeys(operands, float("inf"))
        for attempt in range(20):
            if attempt >= 3 and time.perf_counter() > deadline:
                break
            for kind, pairs in operands.items():
                best[kind] = min(best[kind], _seconds(pairs))
            if best[torch.bfloat16] > 1.0:
                break
        ratio = best[torch.bfloat16] / best[torch.float32]
        if ratio > _MAX_RATIO:
            break
    return ratio


def processor_id() -> str:
    """Return the name of the processor and a hash of its features, which may differ for the same name."""
    fields = processor_fields()
    features = " ".join(fields.get(name, "") for name in ("cpu family", "model", "stepping", "flags", "Features"))
    digest = hashlib.blake2b(features.encode(), digest_size=4).hexdigest()
    return f"{processor_name()} {digest}"


def _operands(tokens: int, rows: int, columns: int, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    # Ones, because denormal or infinite values would change the time.
    return torch.ones(tokens, columns, dtype=kind), torch.ones(rows, columns, dtype=kind)


@torch.inference_mode()
def _seconds(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    # Processor time of the thread, which excludes other processes.
    precise = time.get_clock_info("thread_time").resolution <= 1e-6
    clock = time.thread_time if precise else time.perf_counter
    started = clock()
    with torch.autocast("cpu", enabled=False):
        for inputs, weights in pairs:
            F.linear(inputs, weights)
    return clock() - started


def _accelerator_has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type != "meta"


def _read(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["bf16_to_fp32_time"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
