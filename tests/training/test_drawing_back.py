"""How far a trained encoder is drawn back: as far as the strictest of development pairs and guards demands."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from opencse.foundation.measure import Measures
from opencse.foundation.progress import collect
from opencse.recipes.settings import Selection
from opencse.training.checkpoint import TrainingState
from opencse.training.drawing_back import copy_weights, draw_back
from opencse.training.folder import TRAINED_WEIGHTS

TRAINED = Path(TRAINED_WEIGHTS)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def trained_encoder() -> tuple[nn.Linear, dict[str, torch.Tensor]]:
    """An encoder whose only weight went from 0 to 1, and its untouched weights."""
    encoder = nn.Linear(1, 1, bias=False)
    encoder.weight.data.fill_(0.0)
    untouched = copy_weights(encoder)
    encoder.weight.data.fill_(1.0)
    return encoder, untouched


@dataclass
class Falling:
    """Scores that fall linearly from `first`, by the points of `losses` over the whole way."""

    encoder: nn.Linear
    first: float
    losses: dict[str, float]

    def start(self, encoder: object) -> None:
        raise AssertionError("measures are started before the first step")

    def scores(self) -> dict[str, float]:
        return {name: self.first - lost * self.encoder.weight.item() for name, lost in self.losses.items()}


def draw(tolerance: float, guard_tolerance: float | None, dev: float | None, guards: dict[str, float] | None):
    """Draw back where the scores fall linearly, by `dev` and `guards` points over the whole way."""
    encoder, untouched = trained_encoder()
    selection = Selection(keep="last", tolerance=tolerance, guard_tolerance=guard_tolerance)
    measures = Measures(
        development=None if dev is None else Falling(encoder, 80.0, {"dev": dev}),
        guards=None if guards is None else Falling(encoder, 90.0, guards),
    )
    state = TrainingState(first_score=None if dev is None else 80.0)
    return encoder.weight, draw_back(encoder, untouched, state, selection, measures, Path())


def test_all_is_kept_that_costs_nothing() -> None:
    weight, (share, score, guards) = draw(0.5, 0.3, -2.0, {"answers": -1.0})
    assert (share, weight.item(), score) == (1.0, 1.0, 82.0)
    assert guards == {"answers": (90.0, 91.0)}
    assert not TRAINED.exists(), "the model has these weights"


def test_development_pairs_alone_decide_where_there_are_no_guards() -> None:
    weight, (share, score, guards) = draw(1.0, None, 2.0, None)
    assert share == weight.item() == 0.5
    assert (score, guards) == (79.0, {})


def test_the_time_is_counted_as_that_of_the_guards() -> None:
    with collect() as timings:
        draw(1.0, 0.5, None, {"answers": 1.0})
    assert "guards" in timings.seconds, "it was taken for training steps"


def test_the_strictest_guard_decides() -> None:
    _, (share, score, guards) = draw(1.0, 0.5, 1.0, {"answers": 1.0, "topics": 2.01})
    assert share == pytest.approx(0.2)
    assert score == pytest.approx(79.8)
    assert guards["topics"] == pytest.approx((90.0, 90.0 - 0.2 * 2.01))


def test_guards_decide_without_development_pairs() -> None:
    _, (share, score, _) = draw(0.0, 0.5, None, {"topics": 1.0})
    assert (share, score) == (0.5, None)


def test_nothing_is_kept_where_any_change_costs_too_much() -> None:
    weight, (share, score, guards) = draw(0.75, 0.0, 0.1, {"topics": 100.0})
    assert (share, weight.item(), score) == (0.0, 0.0, 80.0)
    assert load_file(TRAINED)["weight"].item() == 1.0, "the training isn't lost"
    assert guards == {"topics": (90.0, 90.0)}


@pytest.mark.parametrize("twentieths", range(20))
def test_every_share_is_found_within_six_trials(twentieths: int) -> None:
    encoder, untouched = trained_encoder()
    tried = []

    class Dev(Falling):
        def scores(self) -> dict[str, float]:
            tried.append(encoder.weight.item())
            return {"dev": 80.0 if encoder.weight.item() < (twentieths + 0.5) / 20 else 70.0}

    measures = Measures(development=Dev(encoder, 80.0, {}))
    selection = Selection(keep="last", tolerance=0.5)
    share, score, _ = draw_back(encoder, untouched, TrainingState(first_score=80.0), selection, measures, Path())
    assert [share, encoder.weight.item()] == pytest.approx([twentieths / 20] * 2)
    assert (score, len(tried) <= 6) == (80.0, True)
