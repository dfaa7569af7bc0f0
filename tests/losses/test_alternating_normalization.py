from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from opencse.losses import AlternatingNormalizationLoss
from tests.losses.checks import draw, run

POSITIVES, NEGATIVES = ("positive_1", "positive_2"), ("negative_1", "negative_2")
VIEWS = ("anchor", *POSITIVES, *NEGATIVES)


def term(**settings) -> AlternatingNormalizationLoss:
    return AlternatingNormalizationLoss(**{"positives": POSITIVES, "negatives": NEGATIVES, "min_rows": 2} | settings)


def test_the_standard_form_is_softplus_of_the_decoupled_one() -> None:
    """-log(e^p / (e^p + Σ)) = log(1 + e^(L_dec)), for each row and direction; here for one row that has a positive."""
    arrays = draw(("anchor", "positive_1", "negative_1"), 4, seed=3)
    settings = {"positives": ("positive_1",), "negatives": ("negative_1",), "normalize": False}
    one = {"anchor": np.arange(4) < 2, "positive_1": np.arange(4) < 2, "negative_1": np.arange(4) < 2}
    standard = run(term(**settings), arrays, one)[0]

    def directions() -> list[float]:
        unit = {v: a / np.linalg.norm(a, axis=1, keepdims=True) for v, a in arrays.items()}
        found = []
        for i, j in ((0, 1), (1, 0)):
            for a, b in (("anchor", "positive_1"), ("positive_1", "anchor")):
                below = [unit[a][i] @ unit["negative_1"][i] / 0.05, unit[a][i] @ unit[b][j] / 0.05]
                found.append(math.log(sum(map(math.exp, below))) - unit[a][i] @ unit[b][i] / 0.05)
        return found

    assert run(term(**settings, decoupled=True), arrays, one)[0] == pytest.approx(sum(directions()) / 2)
    assert standard == pytest.approx(sum(math.log1p(math.exp(d)) for d in directions()) / 2)


def test_a_stopped_gradient_keeps_the_value() -> None:
    arrays = draw(VIEWS, seed=5)
    flowing, stopped = run(term(), arrays), run(term(stop_gradient=True), arrays)
    assert flowing[0] == pytest.approx(stopped[0])
    assert not stopped[1]["negative_1"].any()
    assert stopped[1]["anchor"].any()


def test_few_rows_are_normalised_by_the_statistics_of_all_views() -> None:
    """Over two rows of its own, every feature of a batch-normalised vector is +1 or -1."""
    x = {view: torch.tensor(a) for view, a in draw(VIEWS, rows=6).items()}
    two = torch.tensor([0, 1])  # row numbers
    every = torch.cat([x[v] if v != "positive_1" else x[v][two] for v in VIEWS])
    own = term(min_rows=2)._target(x["positive_1"], two, every)[two]
    torch.testing.assert_close(own.abs(), torch.full_like(own, 4**-0.5), rtol=0, atol=0.02)
    pooled = term(min_rows=3)._target(x["positive_1"], two, every)[two]
    expected = (x["positive_1"][two] - every.mean(0)) / (every.var(0, correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(pooled, torch.nn.functional.normalize(expected, dim=-1))


def test_a_single_row_counts_with_pooled_statistics_and_not_with_its_own() -> None:
    arrays = draw(VIEWS, rows=4)
    has = {"positive_1": np.arange(4) == 0, "positive_2": np.zeros(4, bool)}
    assert run(term(min_rows=2), arrays, has)[0] == 0
    assert run(term(min_rows=3), arrays, has)[0] > 0
