"""Packed batches: same hidden states and gradients as padded ones, only where that is so."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, ModernBertModel

from opencse.encoder.dropout import (
    FastDropout,
    dropout_config_overrides,
    dropout_rate,
    dropout_rates,
    fast_dropout,
    use_fast_dropout,
)
from opencse.encoder.packing import (
    ATTENTION,
    Packing,
    prepare_for_training,
    use_packed_attention,
    use_packing,
)
from tests.encoder.families import FAMILIES, padded_batch, vectors

PACKABLE = ["bert", "roberta", "electra", "albert", "distilbert"]


def packed_copy(model):
    model = copy.deepcopy(model)
    use_packed_attention(model)
    assert use_packing(model)
    return model


def token_counts(model):
    """How many tokens the last dense layer sees at each call."""
    counts = []
    layer = [m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)][-1]
    layer.register_forward_hook(lambda _, inputs, __: counts.append(inputs[0].shape[:-1].numel()))
    return counts


def test_round_trip():
    _, mask = padded_batch()
    packing, values = Packing.of(mask), torch.randn(5, 11, 3)
    packed = packing.pack(values)
    real = int(mask.sum())
    assert packed.shape[1] % 32 == 0
    assert real <= packed.shape[1] < real + 32
    assert not packed[0, real:].any()
    assert torch.equal(packing.unpack(packed), values * mask[..., None])
    assert packing.positions[0, :15].tolist() == [*range(11), *range(3), 0]


def test_groups_of_similar_length():
    lengths = torch.tensor([5, 40, 6, 40, 0, 7, 16, 17, 3, 2, 9, 33, 4, 70])
    mask = torch.arange(70) < lengths[:, None]
    packing = Packing.of(mask)
    assert [group.mask.sum(1).tolist() for group in packing.groups] == [
        [2, 3, 4, 5, 6, 7, 9, 16],
        [17, 33, 40, 40, 70],
    ]
    ids = torch.arange(1, int(lengths.sum()) + 1)
    padded = torch.zeros(mask.shape, dtype=torch.long).masked_scatter_(mask, ids)
    row = packing.pack(padded)[0]
    assert torch.equal(row[: len(ids)], ids)
    found = torch.cat([row[group.cells].flatten() for group in packing.groups])
    assert torch.equal(found[packing.places][: len(ids)], ids)
    wide = Packing.of(mask, step=64)
    assert [group.mask.sum(1).tolist() for group in wide.groups] == [
        [2, 3, 4, 5, 6, 7, 9, 16, 17, 33, 40, 40],
        [70],
    ]


def assert_equal_without_dropout(model, packed, ids, mask):
    """Hidden states and gradients of a packed model are those of a padded one."""
    with dropout_rate(model, 0.0), dropout_rate(packed, 0.0):
        expected, got = vectors(model, ids, mask), vectors(packed, ids, mask)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)
    upstream = torch.randn_like(expected)
    want = torch.autograd.grad(expected, _used(model), upstream)
    for ours, theirs in zip(torch.autograd.grad(got, _used(packed), upstream), want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_long_and_short_sentences_equal_the_padded_batch():
    torch.manual_seed(3)
    model = FAMILIES["bert"]().train()
    lengths = torch.tensor([3, 30, 5, 4, 28, 7, 3, 5, 6, 2, 29, 30, 18, 19, 20, 21, 22, 23, 24, 17])
    mask = (torch.arange(30) < lengths[:, None]).long()
    ids = torch.randint(4, 60, mask.shape) * mask + (1 - mask)
    assert len(Packing.of(mask).groups) == 2
    assert_equal_without_dropout(model, packed_copy(model), ids, mask)


@pytest.mark.parametrize("family", FAMILIES)
def test_prepared_encoders_keep_weights_and_outputs(family):
    torch.manual_seed(0)
    model, batch = FAMILIES[family](), padded_batch()
    fast = copy.deepcopy(model)
    for _ in range(2):  # the second call changes nothing
        assert prepare_for_training(nn.Sequential(fast)) == (family in PACKABLE)
    assert list(fast.state_dict()) == list(model.state_dict())
    assert (
        fast.config.to_dict() == model.config.to_dict()
    )  # the name of the attention is not written to config.json
    assert torch.equal(vectors(fast.eval(), *batch), vectors(model.eval(), *batch))
    with dropout_rate(model.train(), 0.0), dropout_rate(fast.train(), 0.0):
        torch.testing.assert_close(vectors(fast, *batch), vectors(model, *batch), rtol=0, atol=1e-5)
    state = torch.get_rng_state()
    first = vectors(fast, *batch)
    assert not torch.equal(vectors(fast, *batch), first)
    torch.set_rng_state(state)
    assert torch.equal(vectors(fast, *batch), first)


def test_another_attention_is_respected():
    model = FAMILIES["bert"]()
    model.set_attn_implementation("eager")
    assert not use_packed_attention(model)
    assert model.config._attn_implementation == "eager"
    model.set_attn_implementation("sdpa")
    assert use_packed_attention(model)
    assert model.config._attn_implementation == ATTENTION


def test_a_full_batch_is_packed_where_its_layout_is_given_and_it_trains():
    model, (ids, mask) = packed_copy(FAMILIES["bert"]().train()), padded_batch()
    rows = []
    model.encoder.register_forward_hook(lambda _, args, __: rows.append(tuple(args[0].shape[:2])))
    full = torch.ones_like(mask)
    model(input_ids=ids, attention_mask=full, packing=Packing.of(full))
    model(input_ids=ids, attention_mask=full)
    model.eval()(input_ids=ids, attention_mask=full, packing=Packing.of(full))
    assert rows == [(1, 64), (5, 11), (5, 11)]


def test_nothing_is_read_from_the_device():
    """A tensor on `meta` has no values, so that whatever needs one fails."""
    _, mask = padded_batch()
    meta = torch.device("meta")
    packing = Packing.of(mask).to(meta)
    q, k, v = (
        torch.randn(1, 64, 2, 8, device=meta, requires_grad=True).transpose(1, 2) for _ in range(3)
    )
    with FlopCounterMode(display=False):
        out = packing.attend(q, k, v, 0.1, None)
        out.sum().backward()
        assert packing.unpack(packing.pack(packing.unpack(out))).shape == (5, 11, 2, 8)
        assert packing.positions.shape == (1, 64)
    assert out.shape == (1, 64, 2, 8)


@pytest.mark.parametrize("family", PACKABLE)
def test_equals_padded_batch(family):
    torch.manual_seed(6)
    model, batch = FAMILIES[family]().train(), padded_batch()
    packed = packed_copy(model)
    counts = token_counts(packed)
    assert_equal_without_dropout(model, packed, *batch)
    assert set(counts) == {-(-int(batch[1].sum()) // 32) * 32}
    assert not torch.equal(vectors(packed, *batch), vectors(packed, *batch))


def _used(model):
    return [p for name, p in model.named_parameters() if "pooler" not in name]


def test_other_outputs_and_left_padding():
    torch.manual_seed(7)
    model, (ids, mask) = FAMILIES["bert"]().train(), padded_batch()
    packed = packed_copy(model)
    batch = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, 2, ids.shape),
    }
    with dropout_rate(model, 0.0), dropout_rate(packed, 0.0):
        expected = model(**batch, output_hidden_states=True)
        got = packed(**batch, output_hidden_states=True)
        left = packed(**{name: _to_the_left(value, mask) for name, value in batch.items()})
    torch.testing.assert_close(got.pooler_output, expected.pooler_output, rtol=0, atol=1e-5)
    for ours, theirs in zip(got.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours, theirs * mask[..., None], rtol=0, atol=1e-5)
    for row, length in enumerate(mask.sum(1).tolist()):
        right = expected.last_hidden_state[row, :length]
        torch.testing.assert_close(
            left.last_hidden_state[row, 11 - length :], right, rtol=0, atol=1e-5
        )


def _to_the_left(values, mask):
    return torch.stack(
        [row.roll(11 - int(length)) for row, length in zip(values, mask.sum(1), strict=True)]
    )


def test_leaves_other_calls_alone_but_packs_ids_without_a_name():
    model, (ids, mask) = FAMILIES["bert"](), padded_batch()
    packed = packed_copy(model)
    counts = token_counts(packed)
    packed.eval()(input_ids=ids, attention_mask=mask)
    packed.train()(input_ids=ids, attention_mask=torch.ones_like(mask))
    packed(input_ids=ids, attention_mask=mask, return_dict=False)
    packed(ids, mask)
    packed(input_ids=ids)
    packed(input_ids=ids, attention_mask=mask, position_ids=torch.arange(11)[None])
    assert counts == [55] * 6
    model, (ids, mask) = FAMILIES["bert"]().train(), padded_batch()
    packed = packed_copy(model)
    counts = token_counts(packed)
    with dropout_rate(model, 0.0), dropout_rate(packed, 0.0):
        expected, got = (m(ids, attention_mask=mask).last_hidden_state for m in (model, packed))
    torch.testing.assert_close(got, expected * mask[..., None], rtol=0, atol=1e-5)
    assert counts == [-(-int(mask.sum()) // 32) * 32]


def test_dropout_rate_sets_and_restores():
    model = FAMILIES["bert"]()
    before = dropout_rates(model)
    assert set(before) == {0.1}
    with dropout_rate(model, 0.2):
        assert set(dropout_rates(model)) == {0.2}
        with dropout_rate(model, None):
            assert set(dropout_rates(model)) == {0.2}
    assert dropout_rates(model) == before
    with pytest.raises(RuntimeError), dropout_rate(model, 0.0):
        raise RuntimeError
    assert dropout_rates(model) == before


def test_config_overrides_enable_dropout_that_is_built_away():
    config = FAMILIES["modernbert"]().config
    config.attention_dropout = 0.0
    model = ModernBertModel(config)
    assert set(dropout_rates(model)) == {0.0}
    for name, rate in dropout_config_overrides(config, 0.1).items():
        setattr(config, name, rate)
    raised = ModernBertModel(config)
    assert set(dropout_rates(raised)) == {0.1}
    assert len(dropout_rates(raised)) > len(dropout_rates(model))
    fields = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    assert dropout_config_overrides(BertConfig(), 0.2) == dict.fromkeys(fields, 0.2)
    assert dropout_config_overrides(object(), 0.1) == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_rate_scale_and_gradient(dtype, p) -> None:
    torch.manual_seed(0)
    x = torch.ones(300, 401, dtype=dtype, requires_grad=True)
    y = fast_dropout(x, p)
    kept = y != 0
    assert abs(kept.double().mean().item() - (1 - p)) < 0.005
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - p)), rtol=1e-2, atol=0)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_masks_follow_pytorchs_generator_and_evaluation_drops_nothing() -> None:
    model = nn.Sequential(nn.Dropout(0.3))
    use_fast_dropout(model)
    assert type(model[0]) is FastDropout
    x = torch.ones(50, 7)
    first, second = (torch.manual_seed(3) and model(x) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, model(x))
    assert torch.equal(model.eval()(x), x)
    assert not fast_dropout(x, 1.0).any()
