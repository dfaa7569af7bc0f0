"""Groups of rows of similar length within a batch, which need less padding.

They are used for encoders that cannot take a packed batch (`opencse.encoder.packing`). The embeddings of all groups are
joined before the loss, so that the in-batch negatives of a sentence do not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def length_groups(lengths: Sequence[int], overhead_tokens: float = 64.0) -> list[range]:
    """Split sorted rows into consecutive groups, each padded to its longest row, with the least total cost.

    The cost of a group is `rows * longest + overhead_tokens`. The optimum over all splits is found by dynamic
    programming over the distinct lengths.

    Args:
        lengths: Length of each row in tokens, in ascending order.
        overhead_tokens: Cost of one more forward pass, in tokens.

    Returns:
        Consecutive ranges that cover all rows; `[]` for no rows.

    Raises:
        ValueError: If the lengths are not in ascending order.
    """
    rows = np.asarray(lengths, dtype=np.int64)
    if (np.diff(rows) < 0).any():
        raise ValueError("length_groups needs lengths in ascending order; sort the rows first")
    # Rows of equal length stay together: a cut is possible only where the length changes.
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
