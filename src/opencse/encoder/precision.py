"""A bfloat16 copy of a module whose weights keep changing."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder.device import device_name, processor_fields, processor_name
from opencse.foundation.cache import cache_root
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json


class Bfloat16Copy:
    """A transformer module with its float32 parameters copied to bfloat16, refreshed from the original on demand.

    The original is never touched: casting it in place would drop the gradient accumulators that distributed training
    hooks into.
    """

    def __init__(self, module: nn.Module) -> None:
        self._source = module
        # Putting the cast parameters into deepcopy's memo avoids a float32 copy and keeps tied weights tied.
        memo: dict[int, Any] = {id(p): _cast(p) for p in module.parameters()}
        self._copy = copy.deepcopy(module, memo).eval()

    def refresh(self) -> None:
        """Copy the current values of all parameters and buffers."""
        self._copy.eval()
        with torch.no_grad():
            for kind in ("parameters", "buffers"):
                for source, target in zip(getattr(self._source, kind)(), getattr(self._copy, kind)(), strict=True):
                    target.copy_(source)

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        """Run the copy; floating-point outputs are cast to float32, which pooling and later modules need."""
        return {name: _to_float32(value) for name, value in self._copy(features).items()}


def _cast(parameter: nn.Parameter) -> nn.Parameter:
    value = parameter.detach()
    return nn.Parameter(
        value.to(torch.bfloat16) if value.dtype == torch.float32 else value.clone(), requires_grad=False
    )


def _to_float32(value: Any) -> Any:
    """Cast a tensor, or a sequence of tensors (all hidden layers), to float32."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float32(item) for item in value)
    return value


TrainingPrecision = Literal["fp32", "bf16", "fp16"]

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class MixedPrecision:
    """The parts of a training step that depend on the precision.

    Args:
        name: `fp32`, `bf16` or `fp16`.
        network: The trained module, not wrapped for distribution.
        device: Device of the network.

    Raises:
        OpencseError: fp16 was chosen on a CPU.

    Example:
        ```python
        precision = MixedPrecision("bf16", network, device)
        with precision.forward():
            loss = network(batch)
        precision.backward(loss)  # any number of times
        norm = precision.collect_gradients(max_norm=1.0)
        precision.step(optimizer)
        ```
    """

    def __init__(self, name: TrainingPrecision, network: nn.Module, device: torch.device) -> None:
        if name == "fp16" and device.type == "cpu":
            raise OpencseError("fp16 does not run on a CPU", "Use bf16 or fp32 (--set training.precision=bf16).")
        self.name = name
        self.device = device
        self._parameters = [p for p in network.parameters() if p.requires_grad]
        self._scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def forward(self) -> torch.autocast:
        """Return the context for forward passes; compute the loss itself in fp32."""
        return torch.autocast(self.device.type, _DTYPES[self.name], enabled=self.name != "fp32")

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the loss to those of the parameters."""
        self._scaler.scale(loss).backward()

    def collect_gradients(self, optimizer: torch.optim.Optimizer, max_norm: float) -> Tensor:
        """Undo the loss scale of fp16 and clip the gradients of a step.

        Args:
            optimizer: The optimizer of the step.
            max_norm: Maximum Euclidean norm of all gradients together; infinity for no clipping.

        Returns:
            The norm before clipping, a scalar.
        """
        self._scaler.unscale_(optimizer)
        return nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights, unless fp16 gradients overflowed, and clear the gradients."""
        self._scaler.step(optimizer)
        self._scaler.update()
        optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the loss scale of fp16; empty otherwise."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the loss scale of fp16."""
        if state:
            self._scaler.load_state_dict(state)


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
