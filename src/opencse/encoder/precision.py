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
