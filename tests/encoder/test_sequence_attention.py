"""Packed batches with kernels for sequences of varying length, as on a GPU: equal to padded ones, or not used."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from opencse.encoder import sequence_attention as module
from opencse.encoder.attention import use_dropout_attention
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import Packing, packed_as, use_packing
from opencse.encoder.sequence_attention import kernels_agree, sequence_attention, supports_packing_on
from tests.encoder.families import FAMILIES, padded_batch, vectors

PACKABLE = ["bert", "roberta", "electra", "albert", "distilbert"]
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _fresh():
    kernels_agree.cache_clear()
    yield
    kernels_agree.cache_clear()


def sequence_vectors(model, ids, mask):
    with packed_as(mask, Packing.of(mask, sequences=True)):
        return vectors(model, ids, mask)


def packed_copy(model):
    model = copy.deepcopy(model)
    use_dropout_attention(model)
    assert use_packing(model)
    return model


@pytest.mark.parametrize("family", PACKABLE)
def test_equals_padded_batch(family, monkeypatch):
    torch.manual_seed(6)
    model, batch = FAMILIES[family]().train(), padded_batch()
    packed, calls = packed_copy(model), []
    monkeypatch.setattr(
        "opencse.encoder.attention.sequence_attention",
        lambda *arguments: (calls.append(arguments[0].shape), sequence_attention(*arguments))[1],
    )
    with dropout_rate(model, 0.0), dropout_rate(packed, 0.0):
        expected, got = vectors(model, *batch), sequence_vectors(packed, *batch)
    assert calls == [(1, 2, 64, 8)] * 2  # 33 tokens, filled up to a multiple of 32, in each of two layers
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)
    upstream = torch.randn_like(expected)
    want = torch.autograd.grad(expected, _used(model), upstream)
    for ours, theirs in zip(torch.autograd.grad(got, _used(packed), upstream), want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def _used(model):
    return [p for name, p in model.named_parameters() if "pooler" not in name]


def test_attention_dropout_reaches_the_kernel():
    model, batch = packed_copy(FAMILIES["bert"]().train()), padded_batch()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    plain = sequence_vectors(model, *batch)
    assert torch.equal(plain, sequence_vectors(model, *batch))
    for layer in model.encoder.layer:
        layer.attention.self.dropout.p = 0.3
    dropped = [sequence_vectors(model, *batch) for _ in range(2)]
    assert not torch.allclose(dropped[0], plain, atol=1e-3)
    assert not torch.allclose(dropped[0], dropped[1], atol=1e-3)


def test_the_sentences_of_a_row():
    mask = torch.tensor([[1, 1, 1], [0, 0, 0], [1, 1, 0]])
    sequences = Packing.of(mask, sequences=True).sequences
    assert sequences.offsets.tolist() == [0, 2, 5, 32]  # an empty one is left out, and the zeros at the end are one
    assert sequences.longest == 27
    full = Packing.of(torch.ones(4, 16, dtype=torch.long), sequences=True).sequences
    assert full.offsets.tolist() == [0, 16, 32, 48, 64]
    assert Packing.of(mask).sequences is None


def test_a_full_batch_is_packed_too_and_another_mask_is_not():
    model, (ids, mask) = packed_copy(FAMILIES["bert"]().train()), padded_batch()
    rows = []
    model.encoder.register_forward_hook(lambda _, args, __: rows.append(tuple(args[0].shape[:2])))
    full = torch.ones_like(mask)
    with packed_as(full, Packing.of(full, sequences=True)):
        model(input_ids=ids, attention_mask=full)
        model(input_ids=ids, attention_mask=full.clone())
    model(input_ids=ids, attention_mask=full)
    assert rows == [(1, 64), (5, 11), (5, 11)]


def test_nothing_is_read_from_the_device():
    """A tensor on `meta` has no values, so that whatever needs one fails; it counts operations with flash attention."""
    _, mask = padded_batch()
    meta = torch.device("meta")
    packing = Packing.of(mask, sequences=True).to(meta)
    q, k, v = (torch.randn(1, 64, 2, 8, device=meta, requires_grad=True).transpose(1, 2) for _ in range(3))
    with FlopCounterMode(display=False):
        out = sequence_attention(q, k, v, packing.sequences, 0.1, None)
        out.sum().backward()
        assert packing.unpack(packing.pack(packing.unpack(out))).shape == (5, 11, 2, 8)
        assert packing.positions.shape == (1, 64)
    assert out.shape == (1, 64, 2, 8)


def test_the_trial_accepts_pytorchs_own_attention():
    state = torch.get_rng_state()
    assert kernels_agree(CPU, torch.float32, 2, 8)
    assert torch.equal(torch.get_rng_state(), state)


def _raises(*_):
    raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")


def _across_sentences(query, key, value, sequences, dropout, scaling):
    return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, scale=scaling).transpose(1, 2)


def _without_dropout(query, key, value, sequences, dropout, scaling):
    return sequence_attention(query, key, value, sequences, 0.0, scaling)


def _wrong_gradient(query, key, value, sequences, dropout, scaling):
    return sequence_attention(query, key.detach(), value, sequences, dropout, scaling) + 0 * key.sum()


def _not_a_number(query, key, value, sequences, dropout, scaling):
    return sequence_attention(query, key, value, sequences, dropout, scaling) * float("nan")


@pytest.mark.parametrize("kernel", [_raises, _across_sentences, _without_dropout, _wrong_gradient, _not_a_number])
def test_the_trial_refuses_a_kernel_that_fails_or_disagrees(kernel, monkeypatch):
    monkeypatch.setattr(module, "sequence_attention", kernel)
    assert not kernels_agree(CPU, torch.float32, 2, 8)


def test_a_device_is_tried_with_the_shape_of_the_attention(monkeypatch):
    encoder, tried = torch.nn.Sequential(packed_copy(FAMILIES["distilbert"]())), []
    monkeypatch.setattr(module, "kernels_agree", lambda *what: (tried.append(what), False)[1])
    assert supports_packing_on(encoder, CPU, torch.bfloat16)
    assert not supports_packing_on(encoder, torch.device("mps"), torch.bfloat16)
    assert not tried
    assert not supports_packing_on(encoder, torch.device("cuda"), torch.bfloat16)
    assert tried == [(torch.device("cuda"), torch.bfloat16, 2, 8)]
