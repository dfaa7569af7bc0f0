from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import AutoModel

from opencse.encoder import short_attention as module_under_test
from opencse.encoder.short_attention import NAME, short_attention, use_short_attention
from tests.tiny import tiny_bert

ATTENTION = nn.Module()
ATTENTION.is_causal = False


@pytest.mark.parametrize("length", [1, 7, 16, 17, 32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scaling", [None, 0.1])
def test_is_softmax_attention(length, dtype, scaling):
    torch.manual_seed(length)
    # As a model hands them over: heads are a view into (batch, n, heads · d).
    query, key, value = (torch.randn(3, length, 2 * 8).to(dtype).view(3, length, 2, 8).transpose(1, 2) for _ in "qkv")
    weights = (query.double() @ key.double().transpose(2, 3) * (scaling or 8**-0.5)).softmax(-1)
    expected = (weights @ value.double()).transpose(1, 2)
    actual, none = short_attention(ATTENTION, query, key, value, None, scaling=scaling)
    assert none is None
    assert actual.dtype == dtype
    assert actual.is_contiguous()
    torch.testing.assert_close(actual.double(), expected, atol=1e-6 if dtype == torch.float32 else 0.03, rtol=0)


def test_everything_else_goes_to_transformers(monkeypatch):
    calls = []

    def own(*arguments, **options):
        calls.append(options)
        return arguments[1], None

    monkeypatch.setattr(module_under_test, "sdpa_attention_forward", own)
    q = torch.randn(1, 2, 4, 8)
    long = torch.randn(1, 2, 33, 8)
    short_attention(ATTENTION, q, q, q, torch.ones(1, 1, 4, 4, dtype=torch.bool))
    short_attention(ATTENTION, q, q, q, None, dropout=0.1)
    short_attention(ATTENTION, q, q, q, None, is_causal=True)
    short_attention(nn.Module(), q, q, q, None)  # transformers takes a module that does not say for causal
    short_attention(ATTENTION, q, long, long, None)
    short_attention(ATTENTION, long, long, long, None)
    short_attention(ATTENTION, q, q, q, None, softcap=1.0)
    assert len(calls) == 7
    short_attention(ATTENTION, q, q, q, None)
    assert len(calls) == 7


def test_a_model_computes_the_same_with_it(tmp_path):
    model = AutoModel.from_pretrained(tiny_bert(tmp_path)).eval()
    ids = torch.randint(5, 60, (6, 11))
    mask = torch.ones_like(ids)
    mask[2, 8:] = 0
    with torch.inference_mode():
        expected = [model(ids).last_hidden_state, model(ids, attention_mask=mask).last_hidden_state]
        use_short_attention(model)
        assert model.config._attn_implementation == NAME
        actual = [model(ids).last_hidden_state, model(ids, attention_mask=mask).last_hidden_state]
    torch.testing.assert_close(actual, expected, atol=2e-6, rtol=1e-5)


def test_leaves_eager_models_alone(tmp_path):
    model = AutoModel.from_pretrained(tiny_bert(tmp_path), attn_implementation="eager")
    use_short_attention(model)
    assert model.config._attn_implementation == "eager"
