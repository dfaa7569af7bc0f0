"""Mixed precision for the training loop: fp32 weights, bf16 or fp16 matrix products.

The weights of the model stay in fp32, and `torch.autocast` casts them once per forward pass. So gradients are
accumulated, averaged between processes and clipped in fp32, and checkpoints contain the full weights. (A second, bf16
copy of the weights would save less than 1 % of a step, because the casts cost little compared with the products.)
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from opencse.foundation.errors import OpencseError

TrainingPrecision = Literal["fp32", "bf16", "fp16"]

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast_type(name: TrainingPrecision) -> torch.dtype:
    """Return the data type of the matrix products in a precision."""
    return _DTYPES[name]


def accelerator_autocast(name: str, device: torch.device) -> torch.autocast:
    """Return the autocast context of a precision on an accelerator; on a CPU it changes nothing.

    For a step whose result is thrown away: kernels on an accelerator were tried in the precision of the run only.
    """
    return torch.autocast(device.type, _DTYPES[name], enabled=device.type != "cpu" and name != "fp32")


def _cast_to_autocast_type(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    if output.device.type == "cpu" and output.dtype == torch.float32 and torch.is_autocast_enabled("cpu"):
        return output.to(torch.get_autocast_dtype("cpu"))
    return output


def keep_activations_low(model: nn.Module) -> int:
    """Make the activations between layers bf16 under CPU autocast, in place.

    Autocast leaves the embeddings in fp32, and fp32 then spreads along the residual connections: every layer adds and
    normalises in fp32 and casts to bf16 again before each product. Here the outputs of `LayerNorm` are cast once; its
    statistics are still computed in fp32. Outside autocast nothing changes.

    Args:
        model: An encoder.

    Returns:
        Number of `LayerNorm` modules changed.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    unchanged = [module for module in norms if _cast_to_autocast_type not in module._forward_hooks.values()]
    for module in unchanged:
        module.register_forward_hook(_cast_to_autocast_type)
    return len(unchanged)


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
        if name == "bf16":
            keep_activations_low(network)

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
