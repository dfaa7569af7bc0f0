from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from objectives.checks import check, check_degenerate, draw, run
from opencse.objectives import EmbeddingDistillation, SimilarityPreserving
from reference.preservation import embedding_distillation, kept, similarity_preserving

VIEWS = ("anchor", "paraphrase")
KINDS = {EmbeddingDistillation: embedding_distillation, SimilarityPreserving: similarity_preserving}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(kind, seed) -> None:
    arrays, teacher = draw(VIEWS, 7, seed=seed), draw(VIEWS, 7, seed=seed + 50)
    has = {"anchor": np.ones(7, bool), "paraphrase": np.arange(7) % 3 != 1}
    arrays["paraphrase"][~has["paraphrase"]] = 0
    expected = kept(teacher, has, VIEWS)
    check(
        kind(keep=VIEWS),
        lambda x: KINDS[kind](kept(x, has, VIEWS), expected),
        arrays,
        has,
        teachers={"teacher": teacher},
    )


SCOPES = {
    "across": SimilarityPreserving(keep=("anchor",), across=("negation", "antonym")),
    "within": SimilarityPreserving(keep=("anchor", "negation", "antonym"), within_rows=True),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scope", SCOPES)
def test_cosines_that_are_kept_across_rows_only_or_within_them_only(scope, seed) -> None:
    views, rows = ("anchor", "negation", "antonym"), 5
    arrays, teacher = draw(views, rows, seed=seed), draw(views, rows, seed=seed + 50)
    has = {"anchor": np.ones(rows, bool), "negation": np.arange(rows) != 1, "antonym": np.arange(rows) % 2 == 0}
    for view in views:
        arrays[view][~has[view]] = 0
    place = [(view, row) for view in views for row in range(rows) if has[view][row]]
    pairs = [(i, j, a == b) for i, (_, a) in enumerate(place) for j, (_, b) in enumerate(place)]
    left_out = {(i, j) for i, j, same in pairs if same == (scope == "across")}
    check(
        SCOPES[scope],
        lambda x: similarity_preserving(kept(x, has, views), kept(teacher, has, views), left_out),
        arrays,
        has,
        teachers={"teacher": teacher},
    )


SPECIAL = (0, 1, 2)


def worded(views: tuple[str, ...], rows: int, seed: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Token ids and masks with special tokens at both ends and padding of a real token's id."""
    random = np.random.default_rng(seed)
    found = {}
    for view in views:
        ids = torch.tensor(random.integers(3, 12, size=(rows, 8)))
        lengths = torch.tensor(random.integers(3, 9, size=rows))
        mask = (torch.arange(8) < lengths[:, None]).long()
        ids[:, 0] = 1
        ids[torch.arange(rows), lengths - 1] = 2
        found[view] = ids, mask
    return found


def bag_module(term: SimilarityPreserving) -> torch.nn.Module:
    facts = SimpleNamespace(tokenizer=SimpleNamespace(all_special_ids=list(SPECIAL)))
    return term.module(facts)


@pytest.mark.parametrize("within", [False, True])
def test_cosines_less_the_words_in_common(within) -> None:
    rows = 5
    arrays, teacher = draw(VIEWS, rows), draw(VIEWS, rows, seed=51)
    has = {"anchor": np.ones(rows, bool), "paraphrase": np.arange(rows) != 2}
    arrays["paraphrase"][2] = 0
    tokens = worded(VIEWS, rows, seed=4)
    tokens["paraphrase"][1][2] = 0
    place = [(view, row) for view in VIEWS for row in range(rows) if has[view][row]]
    pieces = [set(tokens[v][0][i][tokens[v][1][i].bool()].tolist()) - set(SPECIAL) for v, i in place]
    left_out = {(i, j) for i, (_, a) in enumerate(place) for j, (_, b) in enumerate(place) if within and a != b}
    term = SimilarityPreserving(keep=VIEWS, within_rows=within, less_overlap=0.15)
    assert term.tokens == VIEWS
    check(
        term,
        lambda x: similarity_preserving(kept(x, has, VIEWS), kept(teacher, has, VIEWS), left_out, pieces, 0.15),
        arrays,
        has,
        teachers={"teacher": teacher},
        tokens=tokens,
        modules={term.name: bag_module(term)},
    )


def test_wording_is_read_only_where_it_counts() -> None:
    term = SimilarityPreserving(keep=VIEWS)
    assert term.tokens == ()
    assert bag_module(term) is None
    with pytest.raises(ValueError, match="less_overlap"):
        SimilarityPreserving(keep=VIEWS, less_overlap=1.5)


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


def test_within_rows_needs_views_to_compare() -> None:
    with pytest.raises(ValueError, match="two views"):
        SimilarityPreserving(within_rows=True)
    with pytest.raises(ValueError, match="none in across"):
        SimilarityPreserving(keep=VIEWS, within_rows=True, across=("negation",))
