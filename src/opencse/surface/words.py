"""Columns of texts as columns of word keys: the form in which whole columns are compared at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SPACE, _END = 32, 10  # between words, after a text
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(8)] + [2**64 - 1], dtype="<u8")
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # odd, bits well spread


@dataclass(frozen=True, kw_only=True)
class WordColumn:
    """The words of n texts, one after another.

    Attributes:
        keys: uint64 (total words,). Equal words have equal keys, and different words of up to eight bytes different
            ones; longer words are hashed, so two of them agree by accident once in 2^64.
        offsets: int64 (n + 1,): text i has the words `keys[offsets[i]:offsets[i + 1]]`.
    """

    keys: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Words in each text: int64 (n,)."""
        return np.diff(self.offsets)


def split_words(texts: Sequence[str], *, lower: bool = True) -> WordColumn:
    """Cut texts at white space, exactly as `str.split()` does.

    Args:
        texts: n texts.
        lower: Fold case with `str.lower`.
    """
    keys, counts = _split(texts, lower)
    return WordColumn(keys=keys, offsets=np.concatenate(([0], np.cumsum(counts))))


def _split(texts: Sequence[str], lower: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of all words, and how many each text has."""
    data = _bytes(texts, lower)
    if data is None:
        fold = str.lower if lower else str
        data = _bytes([text if text.isascii() else _spaced(fold(text)) for text in texts], lower, plain=False)
    if data is None or np.count_nonzero(data[:-8] < _SPACE) != len(texts):  # tabs or control characters within a text
        data = _bytes([_spaced(text.lower() if lower else text) for text in texts], lower, plain=False)
    assert data is not None
    end = data[:-8] == _END
    gaps = np.flatnonzero((data[:-8] == _SPACE) | end)  # after each word, or after each text
    ends = np.flatnonzero(end[gaps])
    starts = np.empty_like(gaps)
    starts[:1], starts[1:] = 0, gaps[:-1] + 1
    sizes = gaps - starts
    if sizes.all():
        return _keys(data, starts, sizes), np.diff(ends, prepend=-1)
    word = sizes > 0
    return _keys(data, starts[word], sizes[word]), np.diff(np.cumsum(word)[ends], prepend=0)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _bytes(texts: Sequence[str], lower: bool, *, plain: bool = True) -> np.ndarray | None:
    """Return the texts as bytes, each followed by a line break, and eight bytes more to read beyond the last word.

    None if they should be `plain` and hold something that is not ASCII.
    """
    joined = "\n".join(texts) + "\n" if len(texts) else ""
    if plain and not joined.isascii():
        return None
    data = joined.encode("utf-8", "surrogatepass")
    return np.frombuffer((data.lower() if lower else data) + bytes(8), dtype=np.uint8)


def _keys(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return one key per word: its bytes where they fit into eight, or else a hash of its pieces of eight."""
    pieces = np.ndarray((max(len(data) - 7, 0),), dtype="<u8", buffer=data, strides=(1,))  # eight bytes from each byte
    keys = pieces[starts] & _MASKS[np.minimum(sizes, 8)]
    more = np.flatnonzero(sizes > 8)
    done = 8
    while len(more):
        keys[more] = _mixed(keys[more], pieces[starts[more] + done] & _MASKS[np.minimum(sizes[more] - done, 8)])
        done += 8
        more = more[sizes[more] > done]
    return keys


def _mixed(keys: np.ndarray, piece: np.ndarray) -> np.ndarray:
    first, second, third = (np.uint64(factor) for factor in _FACTORS)
    mixed = keys * first + (piece ^ (piece >> np.uint64(29))) * second
    mixed ^= mixed >> np.uint64(32)
    return mixed * third
