from __future__ import annotations

import random

import pytest

from opencse.errors import OpencseError
from opencse.views import BackTranslation
from opencse.views.translation import FREQUENT, inserted, masked

TEXTS = ["The old dog sits in the garden.", "a man", "A happy child reads a green book today.", " ", "x" * 2000]
WIDE = {"window": (0.0, 1.0), "max_new_tokens": 8, "batch_size": 2}


def test_there_and_back(marian, rows):
    spec = BackTranslation(models=((marian, marian),), beams=2, **WIDE)
    views = spec.open()(rows(*TEXTS))
    assert views[0].rule == marian
    assert 0 <= views[0].scores["mer"] <= 1
    assert [view.rule for view in views[3:]] == ["no candidate", "no candidate"]
    assert [view.text for view in views[:3]] == [spec.open()([row])[0].text for row in rows(*TEXTS[:3])]


def test_pivots_and_variants_are_candidates(marian, rows):
    spec = BackTranslation(models=((marian, marian),) * 2, variants=2, noise="insert", sample=True, **WIDE)
    views = spec.open(seed=1)(rows(*TEXTS[:3]))
    assert {view.scores["candidates"] for view in views} == {4}
    assert views == spec.open(seed=1)(rows(*TEXTS[:3]))
    assert views != spec.open(seed=2)(rows(*TEXTS[:3]))


def test_window_gives_null(marian, rows):
    spec = BackTranslation(models=((marian, marian),), beams=1, **{**WIDE, "window": (0.0, 0.01)})
    assert spec.open()(rows(TEXTS[0]))[0].rule == "none in window"


def test_noise():
    chance = random.Random(0)
    text = "one two  three"
    made = inserted(text, ["the", "of"], chance)
    assert sorted(made.split()) == sorted([*text.split(), "the", "of"])
    assert masked(text, 2, "[MASK]", chance).split().count("[MASK]") == 2
    assert masked("one", 2, "?", chance) == "?"
    assert len(FREQUENT) > 90


def test_what_is_wrong_is_named(marian):
    with pytest.raises(OpencseError, match="no/such"):
        BackTranslation(models=(("no/such", marian),)).open()
    with pytest.raises(ValueError, match="pairs"):
        BackTranslation(models=())
    with pytest.raises(ValueError, match="window"):
        BackTranslation(models=((marian, marian),), window=(0.5, 0.1))
