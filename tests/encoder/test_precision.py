"""Mixed precision: same learning, fp32 weights and gradients, accumulation and clipping as without."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from opencse.encoder.device import MixedPrecision
from opencse.encoder.packing import prepare_for_training
from opencse.foundation.errors import OpencseError
from tests.encoder.families import FAMILIES, vectors

CPU = torch.device("cpu")


def bert():
    torch.manual_seed(0)
    return FAMILIES["bert"]().train()


def learn(name, steps=40, fast=True):
    model = bert()
    if fast:
        prepare_for_training(model)
    precision = MixedPrecision(name, model, CPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        ids = torch.randint(4, 60, (16, 9))
        mask = (torch.arange(9)[None] < torch.randint(3, 10, (16, 1))).long()
        with precision.forward():
            hidden = [vectors(model, ids, mask) for _ in range(2)]
        first, second = (F.normalize(x[:, 0].float(), dim=-1) for x in hidden)
        loss = F.cross_entropy(first @ second.T / 0.05, torch.arange(16))
        precision.backward(loss)
        precision.collect_gradients(optimizer, 1.0)
        precision.step(optimizer)
        losses.append(loss.item())
    return torch.tensor(losses)


def test_bf16_learns_like_fp32():
    plain, low = learn("fp32"), learn("bf16")
    assert plain[-10:].mean() < 0.7 * plain[:5].mean()
    # The same masks and batches, so that rounding is the only difference.
    torch.testing.assert_close(low[:3], plain[:3], rtol=0.05, atol=0.0)
    assert low[-10:].mean().item() == pytest.approx(plain[-10:].mean().item(), rel=0.15)


def test_accumulation_and_clipping():
    weights = nn.Linear(3, 1, bias=False)
    whole = copy.deepcopy(weights)
    x = torch.randn(8, 3)
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.0)
    precision = MixedPrecision("fp32", weights, CPU)
    for part in x.split(4):
        precision.backward(weights(part).square().mean() / 2)
    whole(x).square().mean().backward()
    torch.testing.assert_close(weights.weight.grad, whole.weight.grad)
    norm = precision.collect_gradients(optimizer, 1e-3)
    torch.testing.assert_close(norm, whole.weight.grad.norm())
    assert weights.weight.grad.norm().item() == pytest.approx(1e-3, rel=1e-3)
    precision.step(optimizer)
    assert weights.weight.grad is None


def test_fp16_needs_a_device_that_has_it():
    with pytest.raises(OpencseError, match="fp16 does not run on a CPU"):
        MixedPrecision("fp16", nn.Linear(1, 1), CPU)
