"""Attention with fast dropout: equals PyTorch's without dropout, and packed batches equal padded ones."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from opencse.encoder.attention import ATTENTION, dropout_attention, use_dropout_attention
from opencse.encoder.dropout import dropout_rate, keep_mask, realised_rate
from opencse.encoder.packing import Packing
from tests.encoder.families import FAMILIES, padded_batch, vectors


def reference(q, k, v, allowed, keep, scale):
    """Literal attention with a given dropout mask."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, float("-inf"))
    return ((scores.softmax(-1) * keep * scale) @ v).transpose(1, 2)


def inputs(dtype=torch.float32):
    torch.manual_seed(1)
    q, k, v = (torch.randn(3, 9, 2, 4, dtype=dtype).transpose(1, 2).requires_grad_() for _ in range(3))
    allowed = (torch.arange(9)[None] < torch.tensor([9, 4, 1])[:, None])[:, None, None, :]
    return (q, k, v), allowed


@pytest.mark.parametrize("masked", ["none", "key", "additive", "full"])
@pytest.mark.parametrize("p", [0.0, 0.3])
def test_equals_literal_attention_with_gradients(masked, p):
    (q, k, v), allowed = inputs()
    given = {"none": None, "key": allowed, "full": allowed.expand(3, 1, 9, 9)}.get(masked)
    if masked == "additive":
        given = torch.zeros(3, 1, 1, 9).masked_fill(~allowed, torch.finfo(torch.float32).min)
    torch.manual_seed(2)
    out, weights = dropout_attention(nn.Module(), q, k, v, given, dropout=p, is_causal=False)
    torch.manual_seed(2)
    keep = -keep_mask((6, 9, 9), p).view(3, 2, 9, 9).float() if p else torch.ones(3, 2, 9, 9)
    expected = reference(q, k, v, None if masked == "none" else allowed, keep, 1 / (1 - realised_rate(p)))
    assert weights is None
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-6)
    upstream = torch.randn_like(out)
    got = torch.autograd.grad(out, (q, k, v), upstream)
    for ours, theirs in zip(got, torch.autograd.grad(expected, (q, k, v), upstream), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_packed_equals_sdpa_without_dropout():
    (q, k, v), allowed = inputs()
    packing = Packing.of(allowed[:, 0, 0].long())
    packed = [packing.pack(x.transpose(1, 2)).transpose(1, 2) for x in (q, k, v)]
    out, _ = dropout_attention(nn.Module(), *packed, None, packing=packing, is_causal=False)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(1, 2)
    torch.testing.assert_close(out, packing.pack(expected), rtol=0, atol=1e-6)
    upstream = torch.randn_like(out)
    got = torch.autograd.grad(out, (q, k, v), upstream)
    for ours, theirs in zip(got, torch.autograd.grad(packing.pack(expected), (q, k, v), upstream), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_rate_of_attention_dropout():
    torch.manual_seed(3)
    q = torch.zeros(8, 4, 64, 8)
    v = torch.ones(8, 4, 64, 8)
    out, _ = dropout_attention(nn.Module(), q, q, v, None, dropout=0.2, is_causal=False)
    # Uniform weights: each output is the kept share of 64 values over 1 - p.
    assert out.mean().item() == pytest.approx(1.0, abs=5 * math.sqrt(0.2 / 0.8 / (8 * 4 * 64 * 64)))


def test_row_without_anything_to_attend_to_is_finite():
    (q, k, v), _ = inputs()
    nothing = torch.zeros(3, 1, 9, 9, dtype=torch.bool)
    out, _ = dropout_attention(nn.Module(), q, k, v, nothing, dropout=0.1, is_causal=False)
    gradients = torch.autograd.grad(out.sum(), (q, k, v))
    assert all(x.isfinite().all() for x in (out, *gradients))


@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_their_outputs(family):
    batch = padded_batch()
    torch.manual_seed(4)
    model = FAMILIES[family]().train()
    with dropout_rate(model, 0.0):
        before = vectors(model, *batch)
        supported = use_dropout_attention(model)
        after = vectors(model, *batch)
    assert supported == (family != "mpnet")
    torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
    with dropout_rate(model, 1e-6):  # our own path, with practically nothing dropped
        torch.manual_seed(5)
        torch.testing.assert_close(vectors(model, *batch), before, rtol=0, atol=1e-4)
    assert not torch.equal(vectors(model, *batch), vectors(model, *batch))
    assert model.config.to_dict().get("_attn_implementation") is None  # not written to config.json


def test_another_choice_is_respected():
    model = FAMILIES["bert"]()
    model.set_attn_implementation("eager")
    assert not use_dropout_attention(model)
    assert model.config._attn_implementation == "eager"


def test_name_is_registered():
    from transformers import AttentionInterface

    assert ATTENTION in AttentionInterface()
