"""opencse gives what the authors' own code gave, on the same rows, weights and draws.

The tolerances are those of the recordings' README. What has no draws runs without dropout; the quick
tests take the losses, gradients and tokens of the first steps; those marked slow take all steps, the
weights, the development scores and the embeddings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.recordings import (
    SYSTEMS,
    Recording,
    Replay,
    find_data,
    find_recordings,
    ifm_errors,
    relative_errors,
    replay,
    token_mismatches,
)

FOLDER, DATA = find_recordings(), find_data()
pytestmark = pytest.mark.skipif(
    FOLDER is None or DATA is None,
    reason="no recordings of the authors' code: set OPENCSE_PARITY, and OPENCSE_DATA",
)

LOSS = {"rankcse-listnet": 1e-5}  # opencse's teachers are fp32
IN_DOUBLE = 1e-9
RESTING = 1e-12
"""Largest movement, absolute, of weights whose gradient is 0 up to rounding."""
FIRST_STEPS = 3
"""Of the quick tests; the schedule is that of all steps."""


def recording(name: str) -> Recording:
    assert FOLDER is not None
    assert DATA is not None
    return Recording(name, FOLDER, DATA)


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The first steps of each system without dropout, computed once."""
    done: dict[str, Replay] = {}

    def of(name: str) -> Replay:
        if name not in done:
            folder = tmp_path_factory.mktemp(name)
            run = "dropout0_authors_fp64"
            done[name] = replay(recording(name), run, folder, evaluate=False, steps=FIRST_STEPS)
        return done[name]

    return of


@pytest.mark.parametrize("name", SYSTEMS)
def test_losses_and_gradients_agree_in_double_precision(replays: Any, name: str) -> None:
    played, authors = replays(name), recording(name).result("dropout0_authors_fp64")
    assert len(played.log) == min(FIRST_STEPS, len(authors["loss"]))
    errors = relative_errors(played, authors)
    limit = LOSS.get(name, IN_DOUBLE)
    for quantity in ("loss", "gradient norm", *authors["components"]):
        if quantity in errors:
            assert errors[quantity] < limit, quantity


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_token_is_that_of_the_authors(replays: Any, name: str) -> None:
    assert replays(name).tokens
    assert not token_mismatches(replays(name), recording(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["simcse", "diffcse", "promptbert", "promptbert-roberta", "esimcse"]
)
def test_it_agrees_with_dropout(tmp_path: Path, name: str) -> None:
    run = "dropout0.1_authors_fp64"
    played = replay(recording(name), run, tmp_path)
    errors = relative_errors(played, recording(name).result(run))
    for quantity in ("loss", "gradient norm", "weights"):
        assert errors[quantity] < IN_DOUBLE, quantity
    assert errors["resting weights"] < RESTING
    assert errors["development score"] < 1e-5
    assert errors["embeddings"] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_complete_runs_agree(tmp_path: Path, name: str) -> None:
    run = "dropout0_authors_fp64"
    played = replay(recording(name), run, tmp_path)
    errors = relative_errors(played, recording(name).result(run))
    for quantity in ("loss", "gradient norm", "weights"):
        assert errors[quantity] < LOSS.get(name, IN_DOUBLE), quantity
    assert errors["resting weights"] < RESTING
    assert errors["development score"] < 1e-5
    assert errors["embeddings"] < 1e-5
    assert not token_mismatches(played, recording(name))


def test_a_momentum_encoder_that_starts_as_the_encoder_agrees_too(tmp_path: Path) -> None:
    run = "dropout0_authors_fp64_momentum_copied"
    played = replay(
        recording("esimcse"),
        run,
        tmp_path,
        "losses.info_nce.start=encoder",
        evaluate=False,
        steps=FIRST_STEPS,
    )
    errors = relative_errors(played, recording("esimcse").result(run))
    assert errors["loss"] < IN_DOUBLE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simcse", "esimcse", "rankcse-listmle"])
def test_single_precision_stays_close(tmp_path: Path, name: str) -> None:
    played = replay(
        recording(name), "dropout0_authors_fp64", tmp_path, precision="fp32", evaluate=False
    )
    authors = recording(name).result("dropout0_authors_fp64")
    np.testing.assert_allclose(played.values("loss"), authors["loss"], atol=1e-5, rtol=5e-5)
    np.testing.assert_allclose(played.values("grad_norm"), authors["grad_norm"], rtol=2e-4)


def test_the_loss_of_ifm_agrees() -> None:
    errors = ifm_errors(recording("ifm"))
    assert max(errors.values()) < IN_DOUBLE
