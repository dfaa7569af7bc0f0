"""Attention with fast dropout: equals PyTorch's without dropout, and packed batches equal padded ones."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
)

from opencse.encoder.attention import ATTENTION, dropout_attention, use_dropout_attention
from opencse.encoder.dropout import dropout_rate, keep_mask, realised_rate
from opencse.encoder.packing import Packing, packed_forward, supports_packing

COMMON = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1}
RATES = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}  # ALBERT has none by default
MODERN = {"sep_token_id": 2, "cls_token_id": 0, "bos_token_id": 0, "eos_token_id": 2, "attention_dropout": 0.1}
FAMILIES = {
    "bert": lambda: BertModel(BertConfig(**COMMON, intermediate_size=32)),
    "roberta": lambda: RobertaModel(RobertaConfig(**COMMON, intermediate_size=32)),
    "electra": lambda: ElectraModel(ElectraConfig(**COMMON, intermediate_size=32, embedding_size=8)),
    "albert": lambda: AlbertModel(AlbertConfig(**COMMON, **RATES, intermediate_size=32, embedding_size=8)),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=32, pad_token_id=1)
    ),
    "mpnet": lambda: MPNetModel(MPNetConfig(**COMMON, intermediate_size=32)),
    "modernbert": lambda: ModernBertModel(
        ModernBertConfig(**COMMON, **MODERN, intermediate_size=32, local_attention=8, global_attn_every_n_layers=2)
    ),
}
PACKABLE = ["bert", "roberta", "electra", "albert", "distilbert"]


@pytest.fixture
def batch():
    torch.manual_seed(0)
    lengths = torch.tensor([11, 3, 7, 1, 11])
    mask = (torch.arange(11)[None] < lengths[:, None]).long()
    ids = torch.where(mask.bool(), torch.randint(4, 60, (5, 11)), 1)
    return ids, mask


def vectors(model, ids, mask, packed=False):
    if packed:
        return packed_forward(model, ids, mask)
    return model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]


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
def test_families_keep_their_outputs(family, batch):
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


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_batch_equals_padded_batch(family, batch):
    torch.manual_seed(6)
    model = FAMILIES[family]().train()
    assert not supports_packing(model)  # the ordinary attention cannot tell packed sentences apart
    use_dropout_attention(model)
    assert supports_packing(model) == (family in PACKABLE)
    assert model.training
    if family not in PACKABLE:
        return
    with dropout_rate(model, 0.0):
        padded, packed = vectors(model, *batch), vectors(model, *batch, packed=True)
        torch.testing.assert_close(packed, padded, rtol=0, atol=1e-5)
        upstream = torch.randn_like(padded)
        parameters = [p for name, p in model.named_parameters() if "pooler" not in name]
        expected = torch.autograd.grad(padded, parameters, upstream)
        for got, want in zip(torch.autograd.grad(packed, parameters, upstream), expected, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert not torch.equal(vectors(model, *batch, packed=True), vectors(model, *batch, packed=True))


def test_left_padding_and_segments(batch):
    torch.manual_seed(7)
    model = FAMILIES["bert"]().eval()
    use_dropout_attention(model)
    ids, mask = batch
    segments = torch.randint(0, 2, ids.shape)
    expected = model(input_ids=ids, attention_mask=mask, token_type_ids=segments).last_hidden_state
    flipped = packed_forward(model, *(_left(x, mask) for x in (ids, mask, segments)))
    for row, length in enumerate(mask.sum(1).tolist()):
        torch.testing.assert_close(flipped[row, 11 - length :], expected[row, :length], rtol=0, atol=1e-5)


def _left(values, mask):
    return torch.stack([row.roll(11 - int(length)) for row, length in zip(values, mask.sum(1), strict=True)])


def test_packing_round_trip(batch):
    _, mask = batch
    packing, values = Packing.of(mask), torch.randn(5, 11, 3)
    packed = packing.pack(values)
    assert packed.shape == (1, mask.sum(), 3)
    assert torch.equal(packing.unpack(packed), values * mask[..., None])
    assert packing.positions[0, :12].tolist() == [*range(11), 0]


def test_name_is_registered():
    from transformers import AttentionInterface

    assert ATTENTION in AttentionInterface()
