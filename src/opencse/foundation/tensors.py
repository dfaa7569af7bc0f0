"""Values that the host knows, so that no training step waits for the device.

The shape of `x[mask]` depends on the values of the mask. If the mask is on a GPU, the host waits
for all earlier work to learn it, and the GPU then idles until the host has launched more. The masks
of a batch come from the host, so losses compute row numbers there and send those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device, without waiting for the copy from the CPU to a GPU."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        # Only a copy from pinned memory runs in the background.
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def true_cells(mask: Tensor, device: torch.device) -> Tensor:
    """Return the positions of the true cells of a flattened mask, (m,), on a device.

    The mask should be on the CPU, where counting its true cells waits for nothing.
    """
    positions = mask.flatten().nonzero().squeeze(1)
    return move(positions, device)


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the names, shapes, types and bytes, sorted by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        # NumPy has no bfloat16, so the bytes are hashed.
        content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(content.numpy().data)
    return digest.hexdigest()
