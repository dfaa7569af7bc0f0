"""Compiled loops over the words of pairs of texts; the data of one pair fits in the processor's L1 cache.

Texts come as bytes, each followed by a line break (`opencse.text.surface.words`). A word has a key of 64 bits: its
bytes if they are at most eight, else a hash of them, so different words share a key with a probability of 2^-64.
numba compiles each function at its first call, and caches the result on disk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from opencse.text.surface.words import SPACE, UPPER

_SUBSTITUTION, _RANK, _ERROR = 1, 1 << 28, 1 << 30  # counts of substitutions, choice among equals, errors
_KEEP = ~(3 * _RANK)  # forgets the choice
_COUNT = _RANK - 1

_ONE, _TWO, _SEVEN, _EIGHT, _TOP, _LOWEST = (np.uint64(n) for n in (1, 2, 7, 8, 56, 255))
_ONES = np.uint64(0x0101010101010101)  # eight bytes of 1
_HIGHS, _BLANKS, _BREAKS = (_ONES * np.uint64(byte) for byte in (0x80, 0x20, 0x0A))
_TO_A, _TO_Z = (_ONES * np.uint64(0x7F - ord(letter)) for letter in ("@", "Z"))  # reach 0x80 from "A", from "["
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))  # odd, bits well spread
_SHIFT, _HALF = np.uint64(29), np.uint64(32)


def _compiled(function: Callable) -> Callable:
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no writable folder for the cache
        return njit(nogil=True)(function)


@_compiled
def align_texts(
    reference: np.ndarray, hypothesis: np.ndarray, classes: np.ndarray, lower: bool, out: np.ndarray, odd: np.ndarray
) -> int:
    """Fill `out`, int64 (n, 4): words of the reference and the hypothesis, word edit distance, substitutions.

    Args:
        reference: n texts as `words.joined` gives them.
        hypothesis: Likewise.
        classes: `words.character_classes`.
        lower: Ignore case.
        out: Receives the counts.
        odd: bool (n,), set for texts with white space or upper case other than blanks and A to Z, which only Python
            handles.

    Returns:
        Number of bytes of both that were read: less than all if texts contain line breaks.
    """
    a, b = np.empty(64, dtype=np.uint64), np.empty(64, dtype=np.uint64)
    cells = np.empty(64, dtype=np.int64)
    p = q = np.uint64(0)
    for pair in range(len(out)):
        a, m, p, strange = _words(reference, p, classes, lower, a)
        b, n, q, stranger = _words(hypothesis, q, classes, lower, b)
        out[pair, 0], out[pair, 1], odd[pair] = m, n, strange or stranger
        # Taking away the words that both end or begin with changes neither the distance nor the substitutions. At the
        # end the back-trace takes the matches first anyway. Removing a common beginning of k words keeps the distance
        # of every cell (i, j) with i, j >= k, hence each choice there, up to the first cell with i = k or j = k; from
        # that one, every shortest way on has no substitution, as its distance is |i - j|.
        while m > 0 and n > 0 and a[m - 1] == b[n - 1]:
            m -= 1
            n -= 1
        first = 0
        while first < m and first < n and a[first] == b[first]:
            first += 1
        if first in (m, n):
            out[pair, 2], out[pair, 3] = max(m, n) - first, 0
            continue
        if len(cells) <= n:
            cells = np.empty(2 * n, dtype=np.int64)
        last = _last_cell(a[first:m], b[first:n], cells)
        out[pair, 2], out[pair, 3] = last >> 30, last & _COUNT
    return int(p + q)


@_compiled
def _last_cell(a: np.ndarray, b: np.ndarray, cells: np.ndarray) -> int:
    """Run the dynamic programme row by row; each cell packs (distance, choice, substitutions) into one integer.

    So the smallest candidate is the one that the back-trace prefers: match or substitution, insertion, deletion.
    """
    n = len(b)
    for j in range(n + 1):
        cells[j] = j * _ERROR
    left = 0
    for i in range(len(a)):
        word, before = a[i], cells[0]
        cells[0] = left = (i + 1) * _ERROR
        for j in range(n):
            above = cells[j + 1]
            diagonal = before if b[j] == word else before + (_ERROR + _SUBSTITUTION)
            left = min(left + (_ERROR + _RANK), min(diagonal, above + (_ERROR + 2 * _RANK))) & _KEEP
            cells[j + 1], before = left, above
    return left


@_compiled
def overlap_texts(
    first: np.ndarray, second: np.ndarray, classes: np.ndarray, lower: bool, out: np.ndarray, odd: np.ndarray
) -> int:
    """Fill `out`, float64 (n,), with shared words over the longer length; the arguments are those of `align_texts`."""
    a, b = np.empty(64, dtype=np.uint64), np.empty(64, dtype=np.uint64)
    p = q = np.uint64(0)
    for pair in range(len(out)):
        a, m, p, strange = _words(first, p, classes, lower, a)
        b, n, q, stranger = _words(second, q, classes, lower, b)
        odd[pair] = strange or stranger
        left = n  # words of the second text that no word of the first has taken
        for i in range(m):
            for j in range(left):
                if b[j] == a[i]:
                    left -= 1
                    b[j] = b[left]
                    break
        out[pair] = (n - left) / max(m, n) if m or n else 1.0
    return int(p + q)


@_compiled
def _words(
    data: np.ndarray, p: np.uint64, classes: np.ndarray, lower: bool, keys: np.ndarray
) -> tuple[np.ndarray, int, np.uint64, bool]:
    """Return the word keys of the text that begins at byte p, which is read eight bytes at a time.

    Returns:
        The keys, their number, the first byte of the next text, and whether the text is odd (see `align_texts`).
    """
    start, count, other = p, 0, np.uint64(0)
    begun, key = False, np.uint64(0)
    while True:
        piece = data[p]
        blank, line = piece ^ _BLANKS, piece ^ _BREAKS
        ends = (((blank - _ONES) & ~blank) | ((line - _ONES) & ~line)) & _HIGHS  # the lowest bit marks the first end
        mask = ((ends & (~ends + _ONE)) >> _SEVEN) - _ONE  # the bytes before it; all eight if there is none
        outside = ~mask
        other |= (piece | ((piece - _BLANKS) & ~piece)) & mask  # the highest bits: not ASCII, or a control character
        if lower:
            low = piece & ~_HIGHS
            piece |= ((low + _TO_A) & ~(low + _TO_Z) & ~piece & _HIGHS) >> _TWO
        piece |= outside  # no text holds the byte 255, so short words are told apart
        if mask:
            key = _mixed(key, piece) if begun else piece
            begun = True
        if not ends:
            p += _EIGHT
            continue
        if begun:
            if count == len(keys):
                keys = np.concatenate((keys, keys))
            keys[count] = key
            count += 1
            begun = False
        p += (((mask & _ONES) * _ONES) >> _TOP) + _ONE
        if not data[p - _ONE] & _BLANKS & _LOWEST:  # a line break
            odd = other & _HIGHS != 0 and _odd(data, start, p - _ONE, classes, lower)
            return keys, count, p, odd


@_compiled
def _odd(data: np.ndarray, p: np.uint64, end: int, classes: np.ndarray, lower: bool) -> bool:
    """Return whether the UTF-8 from byte p to `end` has white space or upper case other than blanks and A to Z."""
    wanted = SPACE | UPPER if lower else SPACE
    while p < end:
        piece = data[p]
        byte = piece & _LOWEST
        p += _ONE
        if byte < 0x80:
            if byte < 0x20 and classes[byte]:
                return True
        elif byte < 0xE0:
            code = (byte & np.uint64(0x1F)) << np.uint64(6) | (piece >> np.uint64(8)) & np.uint64(0x3F)
            p += _ONE
            if classes[code] & wanted:
                return True
        elif byte < 0xF0:
            code = (byte & np.uint64(0x0F)) << np.uint64(12) | (piece >> np.uint64(2)) & np.uint64(0xFC0)
            code |= (piece >> np.uint64(16)) & np.uint64(0x3F)
            p += _TWO
            if classes[code] & wanted:
                return True
        elif lower and (piece >> _EIGHT) & _LOWEST != 0x9F:  # none of the characters from U+1F000 on has a case
            return True
        else:
            p += _TWO + _ONE
    return False


@_compiled
def _mixed(key: np.uint64, piece: np.uint64) -> np.uint64:
    mixed = key * _FACTORS[0] + (piece ^ (piece >> _SHIFT)) * _FACTORS[1]
    return mixed ^ (mixed >> _HALF)
