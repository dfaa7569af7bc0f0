"""A bfloat16 copy of a module whose weights keep changing."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


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
