"""Attention with fast dropout on CPUs, for padded and for packed batches, as a transformers attention implementation.

PyTorch's CPU attention falls back to its slowest path as soon as attention dropout is on, which in contrastive training
is always. This one computes softmax(QK'/√d)V with `opencse.encoder.dropout`'s masks. It is registered through
transformers' `AttentionInterface`, so that no model code is forked, and hands over to PyTorch's own
`scaled_dot_product_attention` wherever that is the better choice: no dropout, other devices, causal attention.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from opencse.encoder.dropout import apply_mask, keep_mask, realised_rate
from opencse.encoder.packing import ATTENTION, Packing
from opencse.encoder.sequence_attention import sequence_attention


class _Attention(torch.autograd.Function):
    """softmax(q k' + bias) with dropout, times v; q, k, v are (N, L, d) with N = batch x heads."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scaling: float, p: float) -> Tensor:
        q = q * scaling
        k_t = k.transpose(1, 2)
        scores = torch.bmm(q, k_t) if bias is None else torch.baddbmm(bias, q, k_t)
        # In fp32, which is more exact, and on CPUs faster than bf16 unless L is a multiple of 32.
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        kept, mask, scale = weights, None, 1.0
        if p > 0.0:
            mask, scale = keep_mask(weights.shape, p), 1.0 / (1.0 - realised_rate(p))
            kept, v = apply_mask(weights, mask), v * scale  # scaling v instead of the weights is cheaper
        ctx.save_for_backward(q, k, v, weights, mask)
        ctx.scaling, ctx.scale = scaling, scale
        return torch.bmm(kept, v)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, mask = ctx.saved_tensors
        grad_weights = torch.bmm(grad, v.transpose(1, 2))
        kept = weights
        if mask is not None:
            kept, grad_weights = apply_mask(weights, mask), apply_mask(grad_weights, mask)
        grad_v = torch.bmm(kept.transpose(1, 2), grad)
        grad_scores = torch._softmax_backward_data(grad_weights.float(), weights.float(), -1, torch.float32).to(q.dtype)
        grad_q, grad_k = torch.bmm(grad_scores, k), torch.bmm(grad_scores.transpose(1, 2), q)
        return grad_q.mul_(ctx.scaling), grad_k, grad_v.mul_(ctx.scale), None, None, None


def _fold_heads(x: Tensor, packing: Packing | None) -> Tensor:
    """(B, H, L, d), or (1, H, T, d) if packed, as contiguous (B * H, L, d)."""
    if packing is not None:
        x = x.transpose(1, 2)[0].index_select(0, packing.slots.flatten())  # (B * L, H, d)
        x = x.view(*packing.mask.shape, *x.shape[1:]).transpose(1, 2)
    return x.reshape(-1, *x.shape[2:])


class _FoldHeads(torch.autograd.Function):
    """`_fold_heads` whose backward is a gather too: each token stands in exactly one cell that is read afterwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packing: Packing | None) -> Tensor:
        ctx.packing, ctx.heads = packing, x.shape[1]
        return _fold_heads(x, packing)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _unfold_heads(grad, ctx.heads, ctx.packing).transpose(1, 2), None


class _UnfoldHeads(torch.autograd.Function):
    """(B * H, L, d) as (B, L, H, d), or (1, T, H, d) if packed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int, packing: Packing | None) -> Tensor:
        ctx.packing = packing
        return _unfold_heads(x, heads, packing)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        packing: Packing | None = ctx.packing
        if packing is not None:  # padding cells were not read, so their gradient is 0
            return _fold_heads(packing.unpack(grad).transpose(1, 2), None), None, None
        return _fold_heads(grad.transpose(1, 2), None), None, None


def _unfold_heads(x: Tensor, heads: int, packing: Packing | None) -> Tensor:
    x = x.view(-1, heads, *x.shape[1:]).transpose(1, 2)
    return x.contiguous() if packing is None else packing.pack(x.contiguous())


def _bias(mask: Tensor | None, heads: int, like: Tensor) -> Tensor | None:
    """A boolean (True = attend) or additive mask (B, 1 or H, Q or 1, K) as additive (B * H, Q, K)."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        # The lowest finite number, not -inf: a row with nothing to attend to (padding) must not become NaN.
        lowest = torch.finfo(like.dtype).min
        mask = torch.zeros(mask.shape, dtype=like.dtype).masked_fill_(mask.logical_not(), lowest)
    rows = mask.to(like.dtype).expand(-1, heads, like.shape[1], like.shape[1])
    return rows.reshape(-1, *rows.shape[2:])


def dropout_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    packing: Packing | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention function in the form that transformers' `AttentionInterface` asks for.

    Args:
        module: The attention layer that calls.
        query: (B, H, L, d); if packed, (1, H, T, d).
        key: Like `query`.
        value: Like `query`.
        attention_mask: Boolean (True = attend) or additive mask that broadcasts to (B, H, L, L), or None.
        dropout: Attention dropout rate, 0 in eval mode.
        scaling: Factor of the scores; None means 1/sqrt(d).
        packing: Layout of a packed batch; `attention_mask` is then ignored.
        **kwargs: Whatever else a model passes on to its attention.

    Returns:
        (B, L, H, d), or (1, T, H, d) if packed; and None in place of attention weights.
    """
    plain = query.device.type == "cpu" and query.shape == key.shape == value.shape and not torch.compiler.is_compiling()
    plain = plain and not kwargs.get("is_causal", getattr(module, "is_causal", False)) and "position_bias" not in kwargs
    if packing is None and (dropout == 0.0 or not plain):
        out: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return out
    if packing is not None and packing.sequences is not None:
        return sequence_attention(query, key, value, packing.sequences, dropout, scaling), None
    heads = query.shape[1]
    q, k, v = (_FoldHeads.apply(x, packing) for x in (query, key, value))
    mask = attention_mask if packing is None else packing.mask[:, None, None, :]
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    out_heads = _Attention.apply(q, k, v, _bias(mask, heads, q), scaling, dropout)
    return _UnfoldHeads.apply(out_heads, heads, packing), None


def attention_mask(*, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor | None:
    """Mask function in the form that transformers' `AttentionMaskInterface` asks for.

    transformers leaves the mask out if it is all ones, which it must read from the device. That pays where all texts
    of a batch have one length, as in inference (`opencse.encoder.token_batches`), but not in a training step.
    """
    if attention_mask is not None and attention_mask.device.type != "cpu" and not torch.is_inference_mode_enabled():
        kwargs["allow_is_bidirectional_skip"] = False
    mask: Tensor | None = sdpa_mask(attention_mask=attention_mask, **kwargs)
    return mask


AttentionInterface.register(ATTENTION, dropout_attention)
AttentionMaskInterface.register(ATTENTION, attention_mask)


def use_dropout_attention(model: nn.Module) -> bool:
    """Switches `model` to this attention, in place.

    Args:
        model: A transformers encoder.

    Returns:
        False, and nothing changed, for models that do not go through `AttentionInterface` (MPNet, DeBERTa:
        `opencse.encoder.dropout.use_fast_dropout` reaches their attention dropout instead), and where something else
        than PyTorch's attention was chosen (`eager`, `flash_attention_2`).
    """
    config: Any = model.config
    if config._attn_implementation == ATTENTION:
        return True
    if config._attn_implementation != "sdpa" or not getattr(model, "_supports_attention_backend", False):
        return False
    model.set_attn_implementation(ATTENTION)  # type: ignore[operator]
    return True
