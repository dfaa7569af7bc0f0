from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opencse.losses.masked_language_model import mask_tokens, sample_tokens
from opencse.losses.replaced_tokens import delete_tokens, insert_tokens
from tests.reference.replaced_tokens import deleted, inserted

PAD, MASK = 0, 99
ROWS = st.lists(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=9), min_size=1, max_size=4)


def batch(rows):
    """Rows of (token, chosen) as ids, mask and chosen."""
    width = max(map(len, rows))
    ids = torch.tensor([[t for t, _ in row] + [PAD] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    chosen = torch.tensor([[c for _, c in row] + [False] * (width - len(row)) for row in rows])
    return ids, mask, chosen


def lines(edit):
    for ids, mask, marked in zip(edit.ids, edit.mask.bool(), edit.marked, strict=True):
        assert (ids[~mask] == PAD).all()
        assert not marked[~mask].any()
        yield ids[mask].tolist(), marked[mask].tolist()


@given(ROWS)
def test_insertion_equals_the_transcription(rows) -> None:
    edit = insert_tokens(*batch(rows), MASK, PAD, 100)
    assert list(lines(edit)) == [inserted([t for t, _ in row], [c for _, c in row], MASK) for row in rows]


@given(ROWS, st.integers(1, 12))
def test_insertion_keeps_to_the_longest_sequence_allowed(rows, longest: int) -> None:
    edit = insert_tokens(*batch(rows), MASK, PAD, longest)
    for row, (ids, _) in zip(rows, lines(edit), strict=True):
        assert len(ids) <= max(longest, len(row))
        assert [t for t in ids if t != MASK] == [t for t, _ in row]


@given(ROWS)
def test_deletion_equals_the_transcription(rows) -> None:
    rows = [[(1, False), *row] for row in rows]  # the first token is never chosen
    edit = delete_tokens(*batch(rows), PAD)
    assert list(lines(edit)) == [deleted([t for t, _ in row], [c for _, c in row]) for row in rows]


def test_shares() -> None:
    torch.manual_seed(0)
    ids = torch.full((200, 500), 7)
    candidates = torch.rand(200, 500) < 0.5
    chosen = sample_tokens(candidates, 0.3)
    assert not (chosen & ~candidates).any()
    assert chosen.sum() / candidates.sum() == pytest.approx(0.3, abs=0.01)
    plain = mask_tokens(ids, chosen, MASK, 50, "mask")
    assert torch.equal(plain == MASK, chosen)
    bert = mask_tokens(ids, chosen, MASK, 50, "bert")
    assert torch.equal(bert[~chosen], ids[~chosen])
    share = (bert == MASK).sum() / chosen.sum()
    changed = ((bert != MASK) & (bert != 7)).sum() / chosen.sum()
    assert share == pytest.approx(0.8, abs=0.01)
    assert changed == pytest.approx(0.1 * 49 / 50, abs=0.01)
