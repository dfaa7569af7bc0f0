"""The choice between fp32 and bf16, and what computes in them: training steps, and a copy for encoding."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from opencse.encoder.device import device_name
from opencse.foundation.errors import OpencseError

ChosenPrecision = Literal["fp32", "bf16"]
TrainingPrecision = Literal["fp32", "bf16", "fp16"]
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "sve_bf16")
"""Capabilities of processors, by PyTorch's names, with which bf16 takes half of the time of fp32 or less."""
_LEAST_WIDTH = 128
"""Width of hidden states below which bf16 is slower even there: conversions take longer than products."""

NO_AUTOCAST = ("deberta",)
"""Model types whose attention fails under autocast: it masks numbers of one type by the least one of another."""


class Bfloat16Copy:
    """A transformer module with its float32 parameters copied to bfloat16, refreshed from the original on demand.

    The original is never touched: casting it in place would drop the gradient accumulators that distributed training
    hooks into.
    """

    def __init__(self, module: nn.Module) -> None:
        self._source = module
        self._copy = copy.deepcopy(module).requires_grad_(False).eval()
        for parameter in self._copy.parameters():  # not buffers, such as rotary frequencies
            if parameter.dtype == torch.float32:
                parameter.data = parameter.data.to(torch.bfloat16)

    def refresh(self) -> None:
        """Copy the current values of all parameters and buffers."""
        self._copy.load_state_dict(self._source.state_dict())

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        """Run the copy; floating-point outputs are cast to float32, which pooling and later modules need."""
        return {name: _to_float32(value) for name, value in self._copy(features).items()}


def _to_float32(value: Any) -> Any:
    """Cast a tensor, or a sequence of tensors (all hidden layers), to float32."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float32(item) for item in value)
    return value


_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class MixedPrecision:
    """The parts of a training step that depend on the precision.

    Args:
        name: `fp32`, `bf16` or `fp16`.
        network: The trained module, not wrapped for distribution.
        device: Device of the network.

    Attributes:
        scaler: The loss scale of fp16, to be saved with checkpoints; it does nothing in other precisions.

    Raises:
        OpencseError: fp16 was chosen on a CPU.

    Example:
        ```python
        precision = MixedPrecision("bf16", network, device)
        with precision.forward():
            loss = network(batch)
        precision.backward(loss)  # any number of times
        norm = precision.collect_gradients(optimizer, max_norm=1.0)
        precision.step(optimizer)
        ```
    """

    def __init__(self, name: TrainingPrecision, network: nn.Module, device: torch.device) -> None:
        if name == "fp16" and device.type == "cpu":
            raise OpencseError("fp16 does not run on a CPU", "Use bf16 or fp32 (--set training.precision=bf16).")
        self.name = name
        self.device = device
        self._parameters = [p for p in network.parameters() if p.requires_grad]
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")

    def forward(self) -> torch.autocast:
        """Return the context for forward passes; compute the loss itself in fp32."""
        return torch.autocast(self.device.type, _DTYPES[self.name], enabled=self.name != "fp32")

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the loss to those of the parameters."""
        self.scaler.scale(loss).backward()

    def collect_gradients(self, optimizer: torch.optim.Optimizer, max_norm: float) -> Tensor:
        """Undo the loss scale of fp16 and clip the gradients of a step.

        Args:
            optimizer: The optimizer of the step.
            max_norm: Maximum Euclidean norm of all gradients together; infinity for no clipping.

        Returns:
            The norm before clipping, a scalar.
        """
        self.scaler.unscale_(optimizer)
        return nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights, unless fp16 gradients overflowed, and clear the gradients."""
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)


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
        width = next((values[name] for name in ("hidden_size", "dim") if name in values), _LEAST_WIDTH)
        able: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        fast = width >= _LEAST_WIDTH and any(able.get(name) for name in _INSTRUCTIONS)
    return "bf16" if fast else "fp32"


def describe(requested: str, config: Any, device: torch.device) -> str:
    """Return a line with device and precision of a model, the first output of many commands."""
    reason = " (the faster one here)" if requested == "auto" else ""
    return f"on {device_name(device)}, {resolve_precision(requested, config, device)}{reason}"


def model_config(model: Any) -> Any:
    """Return the transformers configuration inside a `SentenceTransformer`; empty if there is none."""
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "to_dict"):
            return module.config
    return {}
