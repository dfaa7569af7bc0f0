"""Values that the host knows, so that no training step waits for the device.

The shape of `x[mask]` depends on the values of the mask. If the mask is on a GPU, the host waits for all earlier work
to learn it, and the GPU then idles until the host has launched more. The masks of a batch come from the host, so terms
compute row numbers there and send those.
"""

from __future__ import annotations

import torch
from torch import Tensor


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device; on its way from the CPU to a GPU the process goes on with other work."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()  # only from pinned memory does a copy not wait for the GPU's earlier work
    return tensor.to(device, non_blocking=True)


def true_cells(mask: Tensor, device: torch.device) -> Tensor:
    """Return the positions of the true cells of a flattened mask, (m,), on a device; the mask should be on the CPU."""
    return move(mask.flatten().nonzero().squeeze(1), device)


class HostInteger:
    """The value of an integer buffer, read from its device only after something else wrote to it.

    A buffer is restored from checkpoints and copied between processes; both write to it in place, which its version
    counter shows.

    Args:
        value: The initial value of the buffer.
        buffer: The buffer, a scalar.
    """

    def __init__(self, value: int, buffer: Tensor) -> None:
        self._value = value
        self._seen = (buffer, buffer._version)

    def get(self, buffer: Tensor) -> int:
        """Return the value of the buffer."""
        if self._seen[0] is not buffer or self._seen[1] != buffer._version:
            self._value = int(buffer)
            self._seen = (buffer, buffer._version)
        return self._value

    def set(self, buffer: Tensor, value: int) -> None:
        """Write a value to the buffer."""
        buffer.fill_(value)
        self.moved(buffer, value)

    def moved(self, buffer: Tensor, value: int) -> None:
        """Take note that a buffer, such as one that replaces the last one on another device, has this value."""
        self._value, self._seen = value, (buffer, buffer._version)
