"""RankEncoder's loss, and its memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.losses import Context, RankSimilarityLoss
from opencse.losses.rank_similarity import CorpusMemory, rank_correlations
from tests.losses.checks import draw
from tests.reference.rank_similarity import rank_similarity

ROWS = 6


def computed(loss, memory, vectors, teacher, step=0, present=None):
    context = Context(
        teachers={"a": {"anchor": torch.as_tensor(teacher)}}, modules={loss.name: memory}, step=step
    )
    tensors = {view: torch.as_tensor(array) for view, array in vectors.items()}
    return loss(tensors, present=present, context=context)


@pytest.mark.parametrize("between", [(-1.0, 1.0), (0.1, 0.9999)])
def test_it_is_the_loss_of_the_paper_over_the_latest_sentences(between) -> None:
    loss = RankSimilarityLoss(corpus_size=10, between=between)
    memory = CorpusMemory(loss.corpus_size)
    vectors = draw(("anchor", "twin"), ROWS, 4)
    batches = [draw(("anchor",), ROWS, 3, seed=seed)["anchor"] for seed in (1, 2)]
    for step, teacher in enumerate(batches):
        corpus = np.concatenate(batches[: step + 1])[-10:]
        expected = rank_similarity(vectors["anchor"], vectors["twin"], teacher, corpus, *between)
        actual = computed(loss, memory, vectors, teacher, step)
        assert actual.value.item() == pytest.approx(expected, rel=1e-9)


def test_a_row_without_its_positive_has_no_part() -> None:
    loss = RankSimilarityLoss(between=(-1.0, 1.0))
    vectors = draw(("anchor", "twin"), ROWS, 4)
    teacher = draw(("anchor",), ROWS, 3, seed=1)["anchor"]
    kept = [0, 1, 3, 4, 5]
    present = {"twin": torch.tensor([True, True, False, True, True, True])}
    few = {view: array[kept] for view, array in vectors.items()}
    actual = computed(loss, CorpusMemory(10), vectors, teacher, present=present)
    expected = computed(loss, CorpusMemory(10), few, teacher[kept])
    torch.testing.assert_close(actual.value, expected.value)


def test_the_memory_is_saved_and_a_step_that_is_computed_twice_enters_once() -> None:
    memory = CorpusMemory(5)
    batch = torch.arange(6.0).view(3, 2)
    first = memory.with_batch(batch, step=0)
    assert torch.equal(first, batch)
    assert torch.equal(memory.with_batch(batch, step=0), batch)
    again = CorpusMemory(5)
    again.load_state_dict(memory.state_dict())
    expected = torch.cat([batch[1:], batch + 1])
    assert torch.equal(memory.with_batch(batch + 1, step=1), expected)
    assert torch.equal(again.with_batch(batch + 1, step=1), expected)


def test_ranks_alike_are_1_and_reversed_ones_are_minus_1() -> None:
    values = torch.tensor([[0.1, 0.2, 0.9], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    expected = torch.tensor([[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    torch.testing.assert_close(rank_correlations(values), expected)


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="between must be"):
        RankSimilarityLoss(between=(0.9, 0.5))
