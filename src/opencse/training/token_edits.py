"""Edits of a view's token ids, drawn afresh at each step: shuffled, reversed, shortened or repeated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch


def edited(content: np.ndarray, edit: str, share: float, room: int) -> np.ndarray:
    """Return edited token ids of a sentence.

    Source: PCL (Wu et al., EMNLP 2022) and its code, with a share of 0.2.

    Args:
        content: Token ids of the sentence, without special tokens, (n,).
        edit: `shuffle`, `reverse`, `delete`, `delete_first` or `repeat`.
        share: Share of the tokens that are deleted or repeated.
        room: How many tokens may be added.

    Example:
        >>> edited(np.array([7, 8, 9]), "reverse", share=0.2, room=0).tolist()
        [9, 8, 7]
    """
    change = _EDITS[edit]
    count = round(len(content) * share)
    return change(content, count, room)


def _shuffled(content: np.ndarray, count: int, room: int) -> np.ndarray:
    return content[torch.randperm(len(content)).numpy()]


def _reversed(content: np.ndarray, count: int, room: int) -> np.ndarray:
    return content[::-1].copy()


def _deleted(content: np.ndarray, count: int, room: int) -> np.ndarray:
    kept = torch.randperm(len(content))[count:].sort().values
    return content[kept.numpy()]


def _first_deleted(content: np.ndarray, count: int, room: int) -> np.ndarray:
    """Draw a token, and remove the first one that equals it, as PCL's code does with `list.remove`."""
    shorter = content.tolist()
    for _ in range(count):
        token = shorter[int(torch.randint(len(shorter), ()))]
        shorter.remove(token)
    return np.array(shorter, dtype=content.dtype)


def _repeated(content: np.ndarray, count: int, room: int) -> np.ndarray:
    """Insert copies of random tokens at random places, not next to the original as ESimCSE does."""
    longer = content.tolist()
    for _ in range(min(count, room)):
        token = longer[int(torch.randint(len(longer), ()))]
        place = int(torch.randint(len(longer) + 1, ()))
        longer.insert(place, token)
    return np.array(longer, dtype=content.dtype)


_EDITS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "shuffle": _shuffled,
    "reverse": _reversed,
    "delete": _deleted,
    "delete_first": _first_deleted,
    "repeat": _repeated,
}
