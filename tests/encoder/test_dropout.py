"""Dropout rates: read, set and restored, also where a model is built without dropout."""

import pytest
from transformers import BertConfig, ModernBertModel

from opencse.encoder.dropout import dropout_config_overrides, dropout_rate, dropout_rates
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
