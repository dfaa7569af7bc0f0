"""Dropout rates: read, set and restored; and the masks of the fast dropout."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, ModernBertModel

from opencse.encoder.dropout import (
    FastDropout,
    dropout_config_overrides,
    dropout_rate,
    dropout_rates,
    fast_dropout,
    use_fast_dropout,
)
from tests.encoder.families import FAMILIES


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
