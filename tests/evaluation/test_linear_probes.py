from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.evaluation.cross_validation import CrossValidation, Fit, cross_validate, train_probes
from tests.reference import senteval

SHORT = CrossValidation(folds=3, epochs_per_round=2, patience=1, max_epochs=8)
LOOPS = {"passes": 2, "patience": 1, "limit": 8}


def data(rows: int, width: int = 6, classes: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return (rng.normal(size=(rows, width)) + 2 * np.eye(classes, width)[y]).astype(np.float32), y


def test_every_classifier_is_what_it_would_be_alone():
    x, y = data(211)
    rng = np.random.default_rng(1)
    sizes = [(100, 30), (97, 31), (130, 29), (64, 12)]  # whole and ragged batches, and other numbers of steps
    picks = [rng.permutation(len(x)) for _ in sizes]
    rows = [(order[:a], order[a : a + b]) for order, (a, b) in zip(picks, sizes, strict=True)]
    penalties = (1e-5, 1e-1)
    fits = [Fit(train=a, dev=b, penalties=penalties, random=np.random.RandomState(1111)) for a, b in rows]
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    fitted = train_probes((x, y), fits, SHORT)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    for (a, b), each in zip(rows, fitted, strict=True):
        for place, penalty in enumerate(penalties):
            alone = senteval.Classifier(6, 3, penalty, **LOOPS).fit(x[a], y[a], dev=(x[b], y[b]))
            weights = torch.cat([alone.layer.weight, alone.layer.bias[:, None]], dim=1).detach().numpy()
            assert each.weights[place] == pytest.approx(weights, abs=2e-6)
            assert each.accuracy[place] == pytest.approx(alone.score(x[b], y[b]))
            assert (each.predict(x, place) == alone.predict(x)).all()


def test_the_three_protocols_equal_the_loops():
    x, y = data(160, seed=2)
    found = cross_validate([(x, y)], SHORT)
    assert found.accuracy == pytest.approx(np.mean(senteval.nested(x, y, 3, count=3, **LOOPS)), abs=0.005)
    assert len(found.penalties) == 3
    x_test, y_test = data(90, seed=3)
    found = cross_validate([(x, y), (x_test, y_test)], SHORT)
    predicted, penalty = senteval.cross_validated(x, y, x_test, 3, count=3, **LOOPS)
    assert (found.classes == predicted).all()
    assert found.penalties == (penalty,)
    x_dev, y_dev = data(50, seed=4)
    found = cross_validate([(x, y), (x_dev, y_dev), (x_test, y_test)], SHORT)
    predicted, penalty = senteval.split(x, y, (x_dev, y_dev), x_test, 3, **LOOPS)
    assert (found.classes == predicted).all()
    assert found.penalties == (penalty,)
    assert found.accuracy == 100 * (predicted == y_test).mean()
