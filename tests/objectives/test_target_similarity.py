from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.objectives import PairPreserving, SimilarityPreserving, TargetSimilarity
from tests.objectives.checks import check, check_degenerate, draw, run
from tests.reference.target_similarity import target_similarity

VIEWS = ("anchor", "paraphrase", "negation", "related")
SAME, OPPOSITE, RELATED = (("anchor", "paraphrase"),), (("anchor", "negation"),), (("anchor", "related"),)
ROWS = 6


@pytest.mark.parametrize("polarity", ["", "polarity"])
@pytest.mark.parametrize("across", [(), ("anchor", "negation")])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(polarity, across, seed) -> None:
    arrays = draw(VIEWS, ROWS, seed=seed)
    teachers = {"teacher": draw(VIEWS, ROWS, seed=seed + 50, width=7)}
    teachers |= {"polarity": draw(VIEWS, ROWS, seed=seed + 90, width=3)} if polarity else {}
    has = {view: np.ones(ROWS, bool) for view in VIEWS} | {
        "negation": np.arange(ROWS) % 2 == 0,
        "related": np.arange(ROWS) != 4,
    }
    for view in VIEWS:
        arrays[view][~has[view]] = 0
    settings = {"same": SAME, "opposite": OPPOSITE, "related": RELATED, "across": across}
    check(
        TargetSimilarity(**settings, polarity=polarity, strength=0.35, power=2.5),
        lambda x: target_similarity(
            x, teachers["teacher"], teachers.get("polarity"), has, *settings.values(), strength=0.35, power=2.5
        ),
        arrays,
        has,
        teachers=teachers,
    )


def test_targets_by_polarity() -> None:
    term = TargetSimilarity(same=SAME, strength=0.4, power=3.0)
    cosines = torch.tensor([0.9, 0.1, -0.5])
    np.testing.assert_allclose(term.target(cosines, 1.0), cosines)
    lowered = term.target(cosines, -1.0)
    np.testing.assert_allclose(lowered, [0.9 - 0.8 * 0.729, 0.1 - 0.8 * 0.001, -0.5], atol=1e-6)
    between = term.target(cosines, torch.zeros(3))
    np.testing.assert_allclose(between, (cosines + lowered) / 2, atol=1e-6)


def test_without_polarity_it_is_similarity_preserving_distillation() -> None:
    arrays, teachers = draw(VIEWS, ROWS), {"teacher": draw(VIEWS, ROWS, seed=3)}
    views = ("anchor", "paraphrase")
    kept = run(SimilarityPreserving(keep=views), arrays, teachers=teachers)[0]
    assert run(TargetSimilarity(across=views), arrays, teachers=teachers)[0] == pytest.approx(kept)
    kept = run(PairPreserving(pairs=RELATED), arrays, teachers=teachers)[0]
    assert run(TargetSimilarity(related=RELATED), arrays, teachers=teachers)[0] == pytest.approx(kept)


def test_a_copy_of_the_teacher_is_right_about_the_same_and_wrong_about_opposites() -> None:
    arrays = draw(VIEWS, ROWS)
    assert run(TargetSimilarity(same=SAME), arrays, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)
    assert run(TargetSimilarity(opposite=OPPOSITE), arrays, teachers={"teacher": arrays})[0] > 0.01


def test_the_error_of_each_group_is_reported() -> None:
    arrays = draw(VIEWS, ROWS)
    term = TargetSimilarity(same=SAME, opposite=OPPOSITE, across=("anchor",))
    reports = run(term, arrays, teachers={"teacher": draw(VIEWS, ROWS, seed=3)})[2].reports
    assert set(reports) == {f"target_similarity/{group}_rms" for group in ("same", "opposite", "across")}


def test_teachers_and_views() -> None:
    term = TargetSimilarity(same=SAME, across=("negation",))
    assert term.views == ("anchor", "paraphrase", "negation")
    assert term.teachers == ("teacher",)
    assert TargetSimilarity(same=SAME, polarity="code").teachers == ("teacher", "code")


def test_degenerate_batches() -> None:
    settings = {"same": SAME, "opposite": OPPOSITE, "related": RELATED, "across": ("anchor", "paraphrase")}
    check_degenerate(TargetSimilarity(**settings, polarity="polarity"), ("teacher", "polarity"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "at least one pair"),
        ({"same": SAME, "strength": 1.2}, "between 0 and 1"),
        ({"same": SAME, "power": 0.5}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        TargetSimilarity(**settings)
