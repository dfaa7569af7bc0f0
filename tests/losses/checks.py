"""What every loss is checked for: value and gradient against a transcription, absent rows, degenerate batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from opencse.encoder import load_encoder
from opencse.encoder.loading import load_masked_lm, load_with_pooler
from opencse.losses import Context, Loss, LossBuildContext, LossOutput

Arrays = dict[str, np.ndarray]
Masks = Mapping[str, np.ndarray]
Teachers = Mapping[str, Arrays]


def numeric_gradient(value, x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Central differences of a scalar function of one array."""
    gradient = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += eps
        down[k] -= eps
        gradient[k] = (value(up) - value(down)) / (2 * eps)
    return gradient


def draw(
    views: tuple[str, ...], rows: int = 5, width: int = 4, seed: int = 0, spread: float = 0.7
) -> Arrays:
    """Related vectors: views of one row are near each other."""
    random = np.random.default_rng(seed)
    base = random.normal(size=(rows, width))
    return {view: base + spread * random.normal(size=(rows, width)) for view in views}


def run(
    loss: Loss,
    arrays: Arrays,
    has: Masks | None = None,
    teachers: Teachers | None = None,
    dtype: torch.dtype = torch.float64,
    step: int = 0,
    **known_otherwise: Any,
) -> tuple[float, Arrays, LossOutput]:
    """Loss, gradient by view, and the output with its reports; `known_otherwise` are further fields of the context."""
    tensors = {v: torch.tensor(a, dtype=dtype, requires_grad=True) for v, a in arrays.items()}
    present = {v: torch.ones(len(a), dtype=torch.bool) for v, a in arrays.items()}
    present |= {v: torch.tensor(m) for v, m in (has or {}).items()}
    known = {
        name: {v: torch.tensor(a) for v, a in vectors.items()}
        for name, vectors in (teachers or {}).items()
    }
    output = loss.compute(tensors, present, Context(step=step, teachers=known, **known_otherwise))
    output.value.backward()
    assert output.value.dtype == dtype
    assert not any(report.requires_grad for report in output.reports.values())
    gradients = {
        v: np.zeros(t.shape) if t.grad is None else t.grad.double().numpy()
        for v, t in tensors.items()
    }
    return output.value.item(), gradients, output


def check(
    loss: Loss,
    slow: Callable[[Arrays], float],
    arrays: Arrays,
    has: Masks | None = None,
    teachers: Teachers | None = None,
    **known_otherwise: Any,
) -> None:
    """Value and gradient equal those of the transcription, the gradient by central differences."""
    value, gradients, _ = run(loss, arrays, has, teachers, **known_otherwise)
    assert value == pytest.approx(slow(arrays), rel=1e-9, abs=1e-12)
    for view in loss.views:
        expected = numeric_gradient(lambda x, view=view: slow(arrays | {view: x}), arrays[view])
        np.testing.assert_allclose(
            gradients[view],
            expected,
            atol=2e-6 * (1 + np.abs(expected).max()),
            err_msg=f"{loss.name} {view}",
        )


def check_degenerate(loss: Loss, teachers: tuple[str, ...] = (), rows: int = 4) -> None:
    """No NaN for equal vectors, zero vectors and huge ones; zero where nothing, and little where one row is there."""
    arrays = draw(loss.views, rows)
    known = {name: draw(loss.views, rows, seed=9) for name in teachers}
    equal = {v: np.ones((rows, 4)) for v in arrays}
    zeros = {v: np.zeros((rows, 4)) for v in arrays}
    huge = {v: 1e4 * a for v, a in arrays.items()}
    for dtype in (torch.float32, torch.float64):
        for case in (equal, zeros, huge):
            value, gradients, _ = run(loss, case, teachers=known, dtype=dtype)
            assert np.isfinite(value)
            assert all(np.isfinite(g).all() for g in gradients.values())
    for view in loss.views:
        nothing = {view: np.zeros(rows, bool)}
        value, gradients, _ = run(loss, arrays | {view: np.zeros((rows, 4))}, nothing, known)
        assert np.isfinite(value)
        assert not gradients[view].any()
    value, gradients, _ = run(loss, zeros, {v: np.zeros(rows, bool) for v in loss.views}, known)
    assert value == 0
    one = {v: np.arange(rows) == 1 for v in loss.views}
    value, gradients, _ = run(loss, {v: a * one[v][:, None] for v, a in arrays.items()}, one, known)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradients.values())


def build_context(
    folder: Path, projector: nn.Module | None = None, **changes: Any
) -> LossBuildContext:
    encoder = load_encoder(folder, pooling="cls")
    settings = {
        "width": encoder.get_embedding_dimension(),
        "encoder": encoder,
        "projector": nn.Identity() if projector is None else projector,
        "transformer": encoder[0].auto_model,
        "tokenizer": encoder.tokenizer,
        "masked_lm": lambda name: load_masked_lm(folder if name == "backbone" else name)[0],
        "with_pooler": lambda name: load_with_pooler(folder if name == "backbone" else name)[0],
    }
    return LossBuildContext(**settings | changes)


def toy_build_context(encoder: nn.Module, width: int = 3) -> LossBuildContext:
    """LossBuildContext of something that is no sentence encoder."""
    return LossBuildContext(
        width=width,
        encoder=encoder,
        projector=nn.Identity(),
        transformer=None,
        tokenizer=None,
        masked_lm=nn.Module,
    )
