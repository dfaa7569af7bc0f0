"""Fast dropout: exact rate, unbiased, right gradients, reproducible, and adjustable per view."""

import math

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

from opencse.encoder.dropout import (
    FastDropout,
    dropout_config_overrides,
    dropout_rate,
    dropout_rates,
    fast_dropout,
    keep_mask,
    realised_rate,
    use_fast_dropout,
)

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


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


@pytest.mark.parametrize("p", [0.001, 0.1, 0.15, 0.5, 0.9])
def test_rate_is_exact_within_sampling_error(p):
    torch.manual_seed(0)
    count = 4_000_000
    dropped = (keep_mask((count,), p) == 0).sum().item()
    assert abs(realised_rate(p) - p) <= 2**-17
    # Five standard deviations of a binomial count.
    assert abs(dropped / count - realised_rate(p)) < 5 * math.sqrt(p * (1 - p) / count)


def test_mask_has_no_structure():
    # Runs and shifted copies would betray reuse of bits between neighbouring elements.
    torch.manual_seed(1)
    dropped = (keep_mask((1_000_000,), 0.5) == 0).double() - 0.5
    for shift in (1, 2, 3, 4, 8, 384):
        correlation = (dropped[:-shift] * dropped[shift:]).mean().item() * 4
        assert abs(correlation) < 5e-3, shift


def test_two_masks_are_independent():
    torch.manual_seed(2)
    first, second = keep_mask((1_000_000,), 0.5), keep_mask((1_000_000,), 0.5)
    assert abs((first == second).double().mean().item() - 0.5) < 5e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_mean_is_unbiased(dtype):
    torch.manual_seed(3)
    out = fast_dropout(torch.ones(2_000_000, dtype=dtype), 0.1).double()
    scale = torch.tensor(1 / (1 - realised_rate(0.1)), dtype=dtype).double()
    assert set(out.unique().tolist()) == {0.0, scale.item()}
    rounding = float(torch.finfo(dtype).eps)
    assert out.mean().item() == pytest.approx(1.0, abs=5 * math.sqrt(0.1 / 0.9 / 2e6) + rounding)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (3, 5, 11), (0,), ()])
def test_gradient_is_mask_times_scale(dtype, shape):
    torch.manual_seed(4)
    x = (torch.rand(shape).to(dtype) + 1).requires_grad_()
    out = fast_dropout(x, 0.3)
    upstream = torch.rand(shape).to(dtype) + 1
    out.backward(upstream)
    expected = torch.where(out.detach() != 0, upstream * (1 / (1 - realised_rate(0.3))), 0)
    torch.testing.assert_close(x.grad, expected.to(dtype))
    assert out.shape == x.shape
    assert out.dtype == dtype


def test_strided_input_and_gradient():
    torch.manual_seed(5)
    x = torch.rand(6, 4, requires_grad=True)
    torch.manual_seed(6)
    strided = fast_dropout(x.t(), 0.4)
    torch.manual_seed(6)
    plain = fast_dropout(x.t().contiguous(), 0.4)
    torch.testing.assert_close(strided, plain)
    strided.sum().backward()  # the incoming gradient is an expanded scalar
    torch.testing.assert_close(x.grad.t() != 0, strided != 0)


def test_input_is_not_changed():
    x = torch.ones(1000)
    fast_dropout(x, 0.5)
    assert (x == 1).all()


def test_edges():
    x = torch.rand(100, requires_grad=True)
    assert fast_dropout(x, 0.0) is x
    assert fast_dropout(x, 0.5, training=False) is x
    gone = fast_dropout(x, 1.0)
    assert (gone == 0).all()
    gone.sum().backward()
    assert (x.grad == 0).all()
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            fast_dropout(x, p)
    assert (realised_rate(0.0), realised_rate(1.0)) == (0.0, 1.0)
    assert 0 < realised_rate(1e-9) <= 2**-16
    assert 1 - 2**-16 <= realised_rate(1 - 1e-9) < 1


def test_follows_the_global_generator():
    x = torch.rand(1000)
    torch.manual_seed(7)
    first = fast_dropout(x, 0.1)
    state = torch.get_rng_state()
    second, third = fast_dropout(x, 0.1), fast_dropout(x, 0.1)
    torch.manual_seed(7)
    assert torch.equal(fast_dropout(x, 0.1), first)
    torch.set_rng_state(state)
    assert torch.equal(fast_dropout(x, 0.1), second)
    assert torch.equal(fast_dropout(x, 0.1), third)
    assert not torch.equal(first, second)


def test_does_not_depend_on_thread_count():
    x, threads = torch.rand(300_000), torch.get_num_threads()
    results = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            torch.manual_seed(8)
            results.append(fast_dropout(x, 0.1))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*results)


def test_replaces_modules_in_place():
    model = tiny_bert()
    keys, rates = list(model.state_dict()), dropout_rates(model)
    assert use_fast_dropout(model) == len(rates) == 1 + 3 * 2
    assert use_fast_dropout(model) == 0
    assert list(model.state_dict()) == keys
    assert dropout_rates(model) == rates
    assert all(type(m) is FastDropout for m in model.modules() if isinstance(m, nn.Dropout))


def test_eval_mode_is_untouched():
    model = tiny_bert().eval()
    ids = torch.randint(0, 50, (3, 7))
    before = model(input_ids=ids).last_hidden_state
    use_fast_dropout(model)
    torch.testing.assert_close(model(input_ids=ids).last_hidden_state, before, rtol=0, atol=0)


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
    with pytest.raises(ValueError, match="between 0 and 1"), dropout_rate(model, 2.0):
        pass


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
