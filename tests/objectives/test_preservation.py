from __future__ import annotations

import numpy as np
import pytest

from opencse.objectives import EmbeddingDistillation, SimilarityPreserving
from tests.objectives.checks import check, check_degenerate, draw, run
from tests.reference.preservation import embedding_distillation, kept, rows_of, similarity_preserving

VIEWS = ("anchor", "paraphrase")
KINDS = {EmbeddingDistillation: embedding_distillation, SimilarityPreserving: similarity_preserving}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(kind, seed) -> None:
    arrays, teacher = draw(VIEWS, 7, seed=seed), draw(VIEWS, 7, seed=seed + 50)
    has = {"anchor": np.ones(7, bool), "paraphrase": np.arange(7) % 3 != 1}
    arrays["paraphrase"][~has["paraphrase"]] = 0
    expected = kept(teacher, has, VIEWS)
    rows = (rows_of(has, VIEWS),) if kind is SimilarityPreserving else ()
    check(
        kind(keep=VIEWS),
        lambda x: KINDS[kind](kept(x, has, VIEWS), expected, *rows),
        arrays,
        has,
        teachers={"teacher": teacher},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_the_teacher_loses_nothing(kind) -> None:
    arrays = draw(VIEWS, 6)
    assert run(kind(keep=VIEWS), arrays, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)


def test_a_rotation_keeps_the_cosines_but_not_the_vectors() -> None:
    arrays = draw(VIEWS, 6)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    turned = {view: a @ turn for view, a in arrays.items()}
    assert run(SimilarityPreserving(keep=VIEWS), turned, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)
    assert run(EmbeddingDistillation(keep=VIEWS), turned, teachers={"teacher": arrays})[0] > 0.1


def test_how_near_the_views_of_a_row_are_is_left_to_others() -> None:
    arrays, teacher = draw(VIEWS, 1), draw(VIEWS, 1, seed=9)
    assert run(SimilarityPreserving(keep=VIEWS), arrays, teachers={"teacher": teacher})[0] == 0


def test_only_cosines_can_be_kept_of_a_teacher_of_another_width() -> None:
    arrays, wide = draw(VIEWS, 5), draw(VIEWS, 5, width=9)
    assert run(SimilarityPreserving(keep=VIEWS), arrays, teachers={"teacher": wide})[0] > 0
    with pytest.raises(ValueError, match="9 dimensions"):
        run(EmbeddingDistillation(keep=VIEWS), arrays, teachers={"teacher": wide})


@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_batches(kind) -> None:
    check_degenerate(kind(keep=VIEWS), ("teacher",))


@pytest.mark.parametrize("kind", KINDS)
def test_settings(kind) -> None:
    assert kind(keep=VIEWS).views == VIEWS
    assert kind(teacher="old").teachers == ("old",)
    with pytest.raises(ValueError, match="at least one view"):
        kind(keep=())
