"""Rows of a batch in groups of similar length, so that less padding is computed.

For encoders that cannot take a packed batch (`opencse.encoder.packing`). Which sentences share a batch, and so are each
other's negatives, does not change: the groups' embeddings are put together again before the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def length_groups(lengths: Sequence[int], overhead_tokens: float = 64.0) -> list[range]:
    """Splits sorted rows into consecutive groups, each padded to its own longest row, at the least total cost.

    The cost of a group is `rows * longest + overhead_tokens`. The optimum over all splits is found by dynamic
    programming over the distinct lengths.

    Args:
        lengths: Length of each row in tokens, in ascending order.
        overhead_tokens: What one more forward pass costs, in tokens.

    Returns:
        Ranges of rows that follow each other and cover all rows; `[]` for no rows.

    Raises:
        ValueError: If the lengths are not in ascending order.
    """
    rows = np.asarray(lengths, dtype=np.int64)
    if (np.diff(rows) < 0).any():
        raise ValueError("length_groups needs lengths in ascending order; sort the rows first")
    # Equal rows never part, so the only places to cut are where the length changes.
    cuts = np.concatenate([np.flatnonzero(np.diff(rows)) + 1, [len(rows)]]) if len(rows) else np.zeros(0, np.int64)
    starts = np.concatenate([[0], cuts])
    cost = np.zeros(len(starts))  # cost[i]: of the best split of the first starts[i] rows
    best = np.zeros(len(starts), dtype=np.int64)
    for i, end in enumerate(cuts, start=1):
        candidates = cost[:i] + (end - starts[:i]) * rows[end - 1] + overhead_tokens
        best[i] = int(candidates.argmin())
        cost[i] = candidates[best[i]]
    groups: list[range] = []
    i = len(cuts)
    while i:
        groups.append(range(int(starts[best[i]]), int(starts[i])))
        i = int(best[i])
    return groups[::-1]
