from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from opencse.training.token_edits import edited

CONTENT = np.arange(100, 110)


def test_shuffling_keeps_every_token() -> None:
    torch.manual_seed(1)
    shuffled = edited(CONTENT, "shuffle", 0.2, room=0)
    assert Counter(shuffled.tolist()) == Counter(CONTENT.tolist())
    assert shuffled.tolist() != CONTENT.tolist()


def test_deleting_keeps_the_order_of_the_rest() -> None:
    deleted = edited(CONTENT, "delete", 0.3, room=0)
    assert len(deleted) == 7
    assert deleted.tolist() == sorted(deleted.tolist())


def test_the_first_of_equal_tokens_is_deleted() -> None:
    """Whichever 7 is drawn, the first one goes: never the one before 9."""
    content = np.array([7, 8, 7, 9])
    ends = set()
    for seed in range(20):
        torch.manual_seed(seed)
        ends.add(tuple(edited(content, "delete_first", 0.25, room=0).tolist()))
    assert ends == {(8, 7, 9), (7, 7, 9), (7, 8, 7)}


@pytest.mark.parametrize(("room", "length"), [(5, 12), (1, 11), (0, 10)])
def test_repeating_adds_tokens_while_there_is_room(room: int, length: int) -> None:
    repeated = edited(CONTENT, "repeat", 0.2, room)
    assert len(repeated) == length
    assert set(repeated.tolist()) == set(CONTENT.tolist())


@pytest.mark.parametrize("edit", ["shuffle", "reverse", "delete", "delete_first", "repeat"])
def test_one_token_and_none_are_safe(edit: str) -> None:
    for content in (np.array([7]), np.array([], dtype=np.int64)):
        assert set(edited(content, edit, 0.2, room=3).tolist()) <= {7}
