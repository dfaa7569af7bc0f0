from __future__ import annotations

import numpy as np
import pytest

from opencse.losses import SimilarityPreserving
from tests.losses.checks import check, check_degenerate, draw, run
from tests.reference.preservation import kept, rows_of, similarity_preserving

VIEWS = ("anchor", "paraphrase")


@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(seed) -> None:
    arrays, teacher = draw(VIEWS, 7, seed=seed), draw(VIEWS, 7, seed=seed + 50)
    has = {"anchor": np.ones(7, bool), "paraphrase": np.arange(7) % 3 != 1}
    arrays["paraphrase"][~has["paraphrase"]] = 0
    expected = kept(teacher, has, VIEWS)
    rows = rows_of(has, VIEWS)
    check(
        SimilarityPreserving(keep=VIEWS),
        lambda x: similarity_preserving(kept(x, has, VIEWS), expected, rows),
        arrays,
        has,
        teachers={"teacher": teacher},
    )


def test_a_copy_of_the_teacher_loses_nothing() -> None:
    arrays = draw(VIEWS, 6)
    assert run(SimilarityPreserving(keep=VIEWS), arrays, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)


def test_a_rotation_keeps_the_cosines() -> None:
    arrays = draw(VIEWS, 6)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    turned = {view: a @ turn for view, a in arrays.items()}
    assert run(SimilarityPreserving(keep=VIEWS), turned, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)


def test_how_near_the_views_of_a_row_are_is_left_to_others() -> None:
    arrays, teacher = draw(VIEWS, 1), draw(VIEWS, 1, seed=9)
    assert run(SimilarityPreserving(keep=VIEWS), arrays, teachers={"teacher": teacher})[0] == 0


def test_a_teacher_may_have_another_width() -> None:
    arrays, wide = draw(VIEWS, 5), draw(VIEWS, 5, width=9)
    assert run(SimilarityPreserving(keep=VIEWS), arrays, teachers={"teacher": wide})[0] > 0


def test_degenerate_batches() -> None:
    check_degenerate(SimilarityPreserving(keep=VIEWS), ("teacher",))


def test_settings() -> None:
    assert SimilarityPreserving(keep=VIEWS).views == VIEWS
    assert SimilarityPreserving(teacher="old").teachers == ("old",)
    with pytest.raises(ValueError, match="at least one view"):
        SimilarityPreserving(keep=())
