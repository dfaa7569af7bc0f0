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

from opencse.encoder.dropout import apply_mask, fitting_mask, keep_mask, realised_rate
from opencse.encoder.packing import ATTENTION, Packing, SentenceGroup
from opencse.encoder.sequence_attention import sequence_attention


class _Attention(torch.autograd.Function):
    """softmax(q k' + bias) with dropout, times v; q, k, v are (N, L, d) with N = batch x heads.

    The bias is (batch, 1 or heads, 1 or L, L): it is added in place and never spread over heads and queries.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scaling: float, p: float) -> Tensor:
        q = q * scaling
        scores = torch.bmm(q, k.transpose(1, 2))
        if bias is not None:
            scores.view(len(bias), -1, *scores.shape[1:]).add_(bias)
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
            mask = fitting_mask(mask, weights)
            kept, grad_weights = apply_mask(weights, mask), apply_mask(grad_weights, mask)
        grad_v = torch.bmm(kept.transpose(1, 2), grad)
        grad_scores = torch._softmax_backward_data(grad_weights.float(), weights.float(), -1, torch.float32).to(q.dtype)
        grad_q, grad_k = torch.bmm(grad_scores, k), torch.bmm(grad_scores.transpose(1, 2), q)
        return grad_q.mul_(ctx.scaling), grad_k, grad_v.mul_(ctx.scale), None, None, None


def _fold_heads(x: Tensor, group: SentenceGroup | None) -> Tensor:
    """(B, H, L, d), or the cells of a group as (1, H, cells, d), as contiguous (B * H, L, d)."""
    if group is not None:
        x = x.transpose(1, 2)[0]  # (cells, H, d)
        x = x if group.real is None else x.index_select(0, group.slots.flatten())
        x = x.reshape(*group.mask.shape, *x.shape[1:]).transpose(1, 2)
    return x.reshape(-1, *x.shape[2:])


def _unfold_heads(x: Tensor, heads: int, group: SentenceGroup | None) -> Tensor:
    """(B * H, L, d) as (B, L, H, d), or for a group as (1, cells, H, d)."""
    x = x.view(-1, heads, *x.shape[1:]).transpose(1, 2)
    if group is None:
        return x.contiguous()
    cells = x.reshape(-1, *x.shape[2:])
    return (cells if group.real is None else cells.index_select(0, group.real)).unsqueeze(0)


class _FoldHeads(torch.autograd.Function):
    """`_fold_heads` whose backward is a gather too: each token stands in exactly one cell that is read afterwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: SentenceGroup | None) -> Tensor:
        ctx.group, ctx.heads = group, x.shape[1]
        return _fold_heads(x, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _unfold_heads(grad, ctx.heads, ctx.group).transpose(1, 2), None


class _UnfoldHeads(torch.autograd.Function):
    """`_unfold_heads`; padding is not read, so what its gradient repeats has no effect: the mask of attention is 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int, group: SentenceGroup | None) -> Tensor:
        ctx.group = group
        return _unfold_heads(x, heads, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        group: SentenceGroup | None = ctx.group
        folded = _fold_heads(grad.transpose(1, 2), group)
        if group is not None and group.real is not None:  # padding was not read, so its gradient is 0
            cells = folded.view(len(group.mask), -1, *folded.shape[1:])
            cells.masked_fill_(group.mask.logical_not()[:, None, :, None], 0.0)
        return folded, None, None


def _bias(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A boolean mask (True = attend) or an additive one, (B, 1 or H, 1 or Q, K), as an additive one."""
    if mask is None or mask.dtype != torch.bool:
        return mask if mask is None else mask.to(like.dtype)
    # The lowest finite number, not -inf: a row with nothing to attend to (padding) must not become NaN.
    lowest = torch.finfo(like.dtype).min
    return torch.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill_(mask.logical_not(), lowest)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scaling: float,
    p: float,
    group: SentenceGroup | None,
) -> Tensor:
    """Attention of a padded batch, or of one group of a packed one, as (B, L, H, d) or (1, cells, H, d)."""
    q, k, v = (_FoldHeads.apply(x, group) for x in (query, key, value))
    out: Tensor = _UnfoldHeads.apply(_Attention.apply(q, k, v, bias, scaling, p), query.shape[1], group)
    return out


def _attend_packed(query: Tensor, key: Tensor, value: Tensor, scaling: float, p: float, packing: Packing) -> Tensor:
    """Attention within each sentence of a packed row (1, H, T, d), as (1, T, H, d)."""
    cells = [group.cells for group in packing.groups]
    filling = query.shape[2] - sum(cells)
    parts = zip(packing.groups, *(x.split([*cells, filling], dim=2) for x in (query, key, value)), strict=False)
    out = []
    for group, q, k, v in parts:
        bias = None if group.real is None else _bias(group.mask[:, None, None, :], q)
        out.append(_attend(q, k, v, bias, scaling, p, group))
    heads, d = query.shape[1], query.shape[3]
    return torch.cat([*out, query.new_zeros(1, filling, heads, d)], dim=1)


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
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if packing is not None:
        return _attend_packed(query, key, value, scaling, dropout, packing), None
    return _attend(query, key, value, _bias(attention_mask, query), scaling, dropout, None), None


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
