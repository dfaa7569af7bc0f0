"""Compiled edit distances of a text to many others, by bit vectors (Myers 1999, in the form of Hyyrö 2003).

Each bit is a row of the dynamic programme's table, and one step moves 64 rows on by one column.
"""

from __future__ import annotations

import numpy as np

from opencse.text.surface.alignment_kernel import _compiled, _words

_0, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@_compiled
def word_keys(
    data: np.ndarray, classes: np.ndarray, lower: bool, keys: np.ndarray, counts: np.ndarray, odd: np.ndarray
) -> int:
    """Fill `keys` with the keys of all words, text after text, and `counts` with the number of words of each text.

    Args:
        data: n texts as `words.joined` gives them.
        classes: `words.character_classes`.
        lower: Ignore case.
        keys: uint64, with room for all words.
        counts: int64 (n,).
        odd: As in `alignment_kernel.align_texts`.

    Returns:
        Number of bytes of `data` that were read.
    """
    buffer = np.empty(64, dtype=np.uint64)
    p, total = np.uint64(0), 0
    for text in range(len(counts)):
        buffer, count, p, odd[text] = _words(data, p, classes, lower, buffer)
        keys[total : total + count] = buffer[:count]
        counts[text] = count
        total += count
    return int(p)


@_compiled
def _step(
    equal: np.uint64, vp: np.uint64, vn: np.uint64, more: np.uint64, less: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Move 64 rows on by one column; return the new vertical differences and the horizontal ones.

    Args:
        equal: Rows whose word equals the column's word.
        vp: Rows that cost one more than the row above.
        vn: Rows that cost one less than the row above.
        more: 1 if the row above these costs one more in this column than in the last.
        less: 1 if it costs one less.
    """
    equal |= less
    diagonal = (((equal & vp) + vp) ^ vp) | equal | vn
    hp, hn = vn | ~(diagonal | vp), diagonal & vp
    right, left = (hp << _1) | more, (hn << _1) | less
    return left | ~(diagonal | right), right & diagonal, hp, hn


@_compiled
def distances(keys: np.ndarray, offsets: np.ndarray, anchors: np.ndarray, pools: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the edit distances of each anchor to its pool; see `pool_distances.pool_distance`."""
    for row in range(len(anchors)):
        start, end = offsets[anchors[row]], offsets[anchors[row] + 1]
        m = end - start
        blocks = (m + 63) // 64
        bits = 2
        while 1 << bits < 8 * m:  # so large that most other words find an empty slot
            bits += 1
        shift, last = np.uint64(64 - bits), (1 << bits) - 1
        # The bits of each word of the anchor, in an open-addressing hash table.
        slots = np.zeros(1 << bits, dtype=np.uint64)
        used = np.zeros(1 << bits, dtype=np.bool_)
        masks = np.zeros((1 << bits, max(blocks, 1)), dtype=np.uint64)
        for i in range(m):
            key = keys[start + i]
            slot = np.int64((key * _SPREAD) >> shift)
            while used[slot] and slots[slot] != key:
                slot = (slot + 1) & last
            used[slot], slots[slot] = True, key
            masks[slot, i // 64] |= _1 << np.uint64(i % 64)
        up, down = np.empty(max(blocks, 1), dtype=np.uint64), np.empty(max(blocks, 1), dtype=np.uint64)
        top = np.uint64((m - 1) % 64)
        for k in range(pools.shape[1]):
            member = pools[row, k]
            if member < 0:
                continue
            first, stop = offsets[member], offsets[member + 1]
            if m == 0:
                out[row, k] = stop - first
                continue
            distance, vp, vn = m, ~_0, _0  # rows that cost one more, or one less, than the row above
            if blocks > 1:
                up[:], down[:] = vp, vn
            for j in range(first, stop):
                key = keys[j]
                slot = np.int64((key * _SPREAD) >> shift)
                while used[slot] and slots[slot] != key:
                    slot = (slot + 1) & last
                if blocks == 1:
                    vp, vn, hp, hn = _step(masks[slot, 0], vp, vn, _1, _0)
                else:
                    more, less = _1, _0  # carried over from the block above; the first row grows by one per column
                    for block in range(blocks):
                        up[block], down[block], hp, hn = _step(masks[slot, block], up[block], down[block], more, less)
                        more, less = hp >> _63, hn >> _63
                distance += np.int64((hp >> top) & _1) - np.int64((hn >> top) & _1)
            out[row, k] = distance
