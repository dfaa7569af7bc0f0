from __future__ import annotations

import pytest
import torch
from torch import nn

from opencse.encoder.dropout import FastDropout, fast_dropout, use_fast_dropout


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
