"""Dropout rates: read, set and restored, also where a model is built without dropout."""

import pytest
import torch
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

from opencse.encoder.dropout import dropout_config_overrides, dropout_rate, dropout_rates


def tiny_bert(**settings) -> BertModel:
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, **settings
    )
    return BertModel(config, add_pooling_layer=False).train()


def tiny_modernbert(**settings) -> ModernBertModel:
    config = ModernBertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        pad_token_id=0,
        cls_token_id=1,
        sep_token_id=2,
        bos_token_id=1,
        eos_token_id=2,
        **settings,
    )
    return ModernBertModel(config).train()


def test_dropout_rate_sets_and_restores():
    model = tiny_bert(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.3)
    before = dropout_rates(model)
    assert set(before) == {0.1, 0.3}
    with dropout_rate(model, 0.2):
        assert set(dropout_rates(model)) == {0.2}
        with dropout_rate(model, None):
            assert set(dropout_rates(model)) == {0.2}
    assert dropout_rates(model) == before
    with pytest.raises(RuntimeError), dropout_rate(model, 0.0):
        raise RuntimeError
    assert dropout_rates(model) == before


@pytest.mark.parametrize("build", [tiny_bert, lambda: tiny_modernbert(attention_dropout=0.1, mlp_dropout=0.1)])
def test_rate_zero_makes_views_equal(build):
    model, ids = build(), torch.randint(3, 50, (3, 7))
    with dropout_rate(model, 0.0):
        first, second = (model(input_ids=ids).last_hidden_state for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(model(input_ids=ids).last_hidden_state, first)


def test_config_overrides_enable_dropout_that_is_built_away():
    model = tiny_modernbert()
    assert set(dropout_rates(model)) == {0.0}
    overrides = dropout_config_overrides(model.config, 0.1)
    raised = tiny_modernbert(**overrides)
    assert set(dropout_rates(raised)) == {0.1}
    assert len(dropout_rates(raised)) > len(dropout_rates(model))
    assert dropout_config_overrides(BertConfig(), 0.2) == {
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.2,
    }
    assert dropout_config_overrides(object(), 0.1) == {}
