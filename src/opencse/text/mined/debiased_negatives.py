"""Debiased negatives: a weighted draw from sentences whose similarity lies in a window (DebCSE §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opencse.foundation.numbers import check_least
from opencse.text.mined.candidate_pools import CandidatePools, in_window
from opencse.text.mined.mined_spec import CorpusIndex, Counts, MinedSpec, open_bounds
from opencse.text.mined.selection import DebiasedDraw, gumbel_noise
from opencse.text.surface import edit_units
from opencse.text.views.constructor import SourceRow

_ENCODED = 40_000  # texts whose words are held in memory at a time


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(DebiasedDraw, MinedSpec):
    """Draw negatives with a similar surface form and a different meaning.

    The candidate pool of a sentence is a random sample of the sentences whose cosine lies in the window, from a random
    block of the corpus. Negatives are drawn from it without replacement, by `opencse.text.mined.selection`. Source:
    Miao et al., DebCSE (CIKM 2023), §4.1.

    Attributes:
        model: The encoder; DebCSE uses an unsupervised SimCSE model.
        count: Number of negatives per row (DebCSE: 2).
        window: Minimum and maximum cosine of a candidate (DebCSE: 0.25 and 0.75).
        pool: n, the maximum size of a candidate pool; the paper does not give it.
        block: Number of sentences that are scored for each row; 4,096 rows share a block. If it is at least the size
            of the corpus, all pairs are scored.

    Example:
        [build.negative]
        kind = "debiased_negatives"
        model = "backbone"
        count = 2
        window = [0.25, 0.75]

    Example:
        >>> spec = DebiasedNegatives(model="mini-mlm", pooling="mean", precision="fp32", count=1, window=(-1, 1))
        >>> spec.preview("It rains.", "It snows.", "We swim.")
        [['We swim.'], ['We swim.'], ['It rains.']]
    """

    kind: ClassVar[str] = "debiased_negatives"

    window: tuple[float, float] = (0.25, 0.75)
    pool: int = 200
    block: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "pool", "block")

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        block = self.random_block(self.block, rows, index, seed)
        ids, size = np.array([row.id for row in rows]), min(self.pool, len(block))
        pools = in_window(ids, block, index.searched, size=size, window=open_bounds(self.window))
        seeds = self.row_seeds(seed, rows)
        places = np.empty((len(rows), self.count), dtype=np.int64)
        step = len(rows) if len(block) <= _ENCODED else max(1, _ENCODED // size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            part_pools = CandidatePools(ids=pools.ids[part], cosine=pools.cosine[part])
            places[part] = self._places(ids[part], part_pools, seeds[part], index)
        return pools.at(places), {"candidates": pools.sizes}

    def _places(self, ids: np.ndarray, pools: CandidatePools, seeds: np.ndarray, index: CorpusIndex) -> np.ndarray:
        """Return the positions that are drawn from the pool of each row, (a, m)."""
        used, place = np.unique(np.concatenate((ids, pools.ids[pools.valid])), return_inverse=True)
        texts = edit_units(index.sentences.take(used))
        anchors, members = place[: len(ids)], np.full(pools.ids.shape, -1)
        members[pools.valid] = place[len(ids) :]
        return self.places(texts, anchors, members, pools.cosine, gumbel_noise(seeds, pools.ids))
