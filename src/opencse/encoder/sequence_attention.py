"""Attention of packed batches on accelerators, with PyTorch's kernels for sequences of varying length.

PyTorch reaches them, with dropout, through nested tensors of the jagged layout: flash attention in 16 bits, else
memory-efficient attention. Its function for such sequences (`varlen_attn`) has no dropout. Whether they work on a
device is tried out there (`kernels_agree`), because kernels depend on the card, the data type and PyTorch's version.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nested import nested_tensor_from_jagged
from torch.nn.attention import SDPBackend, sdpa_kernel

from opencse.encoder.packing import Packing, Sequences, is_packed

_KERNELS = {"cuda": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]}
"""Kernels that read nothing back from the device; the others would be slower than padding."""
_TOLERANCE = 0.03  # relative; bf16 rounds to 0.004, while attention to another sentence changes everything
_LENGTHS = (5, 1, 9)
_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, AssertionError)


def sequence_attention(
    query: Tensor, key: Tensor, value: Tensor, sequences: Sequences, dropout: float, scaling: float | None
) -> Tensor:
    """softmax(query key') with dropout, times value, within each sentence of a packed row.

    Args:
        query: (1, H, T, d).
        key: Like `query`.
        value: Like `query`.
        sequences: The sentences of the row.
        dropout: Attention dropout rate.
        scaling: Factor of the scores; None means 1/sqrt(d).

    Returns:
        (1, T, H, d).

    Raises:
        RuntimeError: No kernel takes these tensors.
    """
    q, k, v = (_by_sequence(x, sequences) for x in (query, key, value))
    kernels = _KERNELS.get(query.device.type)
    with contextlib.nullcontext() if kernels is None else sdpa_kernel(kernels):
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scaling)
    return out.transpose(1, 2).values().unsqueeze(0)


def _by_sequence(x: Tensor, sequences: Sequences) -> Tensor:
    """(1, H, T, d) as a jagged tensor (sentences, H, ragged, d)."""
    # With both lengths given, nothing has to be read from the device.
    jagged = nested_tensor_from_jagged(
        x[0].transpose(0, 1), sequences.offsets, min_seqlen=1, max_seqlen=sequences.longest
    )
    return jagged.transpose(1, 2)


def supports_packing_on(encoder: nn.Module, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether packed batches of a packed encoder train on a device: true on CPUs, tried out elsewhere.

    Args:
        encoder: A module with encoders, after `opencse.encoder.fast.prepare_for_training`.
        device: The device.
        dtype: Data type of the products there.
    """
    if device.type == "cpu":
        return True
    if device.type not in _KERNELS:
        return False
    configs: list[Any] = [m.config for m in encoder.modules() if is_packed(m)]
    shapes = [(c.num_attention_heads, c.hidden_size // c.num_attention_heads) for c in configs]
    return bool(shapes) and all(kernels_agree(device, dtype, heads, width) for heads, width in shapes)


@functools.cache
def kernels_agree(device: torch.device, dtype: torch.dtype, heads: int, width: int) -> bool:
    """Whether attention of a small packed batch works on a device and agrees with that of the padded one.

    Values and gradients are compared without dropout, and dropout must change the values.

    Args:
        device: The device.
        dtype: Data type of queries, keys and values.
        heads: Number of heads.
        width: Width of a head.
    """
    generator = torch.Generator("cpu").manual_seed(0)
    mask = torch.arange(max(_LENGTHS), device="cpu") < torch.tensor(_LENGTHS, device="cpu")[:, None]
    packing = Packing.of(mask, sequences=True).to(device)
    shape = (len(_LENGTHS), heads, max(_LENGTHS), width)
    inputs = [torch.randn(shape, generator=generator, device="cpu").to(device, dtype) for _ in range(4)]

    def padded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=packing.mask[:, None, None, :])
        return out.transpose(1, 2) * packing.mask[:, :, None, None]

    def packed(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        q, k, v = (packing.pack(x.transpose(1, 2)).transpose(1, 2) for x in (q, k, v))
        assert packing.sequences is not None
        return packing.unpack(sequence_attention(q, k, v, packing.sequences, dropout, None))

    devices = [] if device.type == "cpu" else [device]
    with _silent(), torch.autocast(device.type, enabled=False), torch.random.fork_rng(devices):
        try:
            expected, got = _with_gradients(padded, *inputs), _with_gradients(packed, *inputs)
            dropped = packed(inputs[0], inputs[1], inputs[2], dropout=0.5)
        except _ERRORS:
            return False
    near = all(float((a - b).norm()) <= _TOLERANCE * float(b.norm()) for a, b in zip(got, expected, strict=True))
    return near and bool(dropped.isfinite().all()) and not torch.equal(dropped, got[0])


def _with_gradients(attention: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """The output for q, k and v, and its gradients, given that of the output as the last input."""
    *leaves, upstream = (x.detach().clone().requires_grad_() for x in inputs)
    out = attention(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, upstream.detach().transpose(1, 2))]


@contextlib.contextmanager
def _silent() -> Any:
    """Holds back what PyTorch has to say about each kernel that it cannot use."""
    logger = logging.getLogger("torch.nested")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
