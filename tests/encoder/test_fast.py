"""All measures at once, on the modules that sentence-transformers builds."""

import copy

import pytest
import torch
from torch import nn

from opencse.encoder.dropout import FastDropout, dropout_rate
from opencse.encoder.fast import prepare_for_training
from opencse.encoder.loading import load_encoder
from tests.encoder.families import FAMILIES, padded_batch, vectors
from tests.tiny import tiny_bert


@pytest.mark.parametrize("family", FAMILIES)
def test_changes_speed_only(family):
    torch.manual_seed(0)
    model, batch = FAMILIES[family](), padded_batch()
    fast = copy.deepcopy(model)
    assert prepare_for_training(nn.Sequential(fast)) == (family not in ("mpnet", "modernbert"))
    assert list(fast.state_dict()) == list(model.state_dict())
    assert fast.config.to_dict() == model.config.to_dict()
    torch.testing.assert_close(vectors(fast.eval(), *batch), vectors(model.eval(), *batch), rtol=0, atol=1e-6)
    with dropout_rate(model.train(), 0.0), dropout_rate(fast.train(), 0.0):
        torch.testing.assert_close(vectors(fast, *batch), vectors(model, *batch), rtol=0, atol=1e-5)
    assert all(type(m) is FastDropout for m in fast.modules() if isinstance(m, nn.Dropout))


def test_second_call_changes_nothing():
    model = FAMILIES["bert"]()
    assert prepare_for_training(model)
    forward = model.forward
    assert prepare_for_training(model)
    assert model.forward == forward


def test_packed_inside_a_sentence_encoder(tmp_path):
    encoder = load_encoder(tiny_bert(tmp_path), pooling="mean")
    assert prepare_for_training(encoder)
    rows = []
    encoder[0].auto_model.encoder.register_forward_hook(lambda _, args, __: rows.append(args[0].shape[:2]))
    ids, mask = padded_batch()
    encoder.train()({"input_ids": ids, "attention_mask": mask})
    assert rows == [(1, -(-int(mask.sum()) // 32) * 32)]


def test_nothing_to_pack():
    assert not prepare_for_training(nn.Linear(2, 2))


@pytest.mark.parametrize("family", FAMILIES)
def test_resumed_run_repeats_itself(family):
    torch.manual_seed(1)
    model, batch = FAMILIES[family]().train(), padded_batch()
    prepare_for_training(model)
    vectors(model, *batch)
    state = torch.get_rng_state()
    first = [vectors(model, *batch) for _ in range(2)]
    torch.set_rng_state(state)
    again = [vectors(model, *batch) for _ in range(2)]
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], first[1])
