"""Hard negatives: the nearest sentences of the corpus, by rank and window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opencse.foundation.numbers import check_least
from opencse.text.mined.candidate_pools import CandidatePools, nearest, without_copies
from opencse.text.mined.mined_spec import CorpusIndex, MinedSpec, check_cosine_window, open_bounds
from opencse.text.mined.selection import draw, gumbel_noise
from opencse.text.views.constructor import SourceRow


@dataclass(frozen=True, kw_only=True)
class HardNegatives(MinedSpec):
    """Draw the nearest sentences of the corpus as negatives, also known as hard negative mining.

    The sentences within the window are sorted by cosine; from those with the given ranks, `count` are
    drawn: the nearest, or random ones. Copies of the sentence are never drawn.

    Attributes:
        ranks: First rank and the one after the last; the nearest has rank 0, so [10, 50] skips the ten nearest. [0, 0]
            stands for [0, count].
        window: Minimum and maximum cosine.
        pick: "top" for the nearest of the ranks, "random" for random ones.
        search: "block" searches a random block of the corpus, which 4,096 rows share; "exact" searches the whole
            corpus, in quadratic time.
        block: Size of the random block.

    Example:
        [build.related]
        kind = "hard_negatives"
        model = "backbone"
        count = 1
        window = [0.3, 0.88]
        ranks = [0, 24]
        pick = "random"

    Example:
        >>> spec = HardNegatives(model="mini-mlm", pooling="mean", precision="fp32", count=1)
        >>> spec.preview("It rains.", "It snows.", "We swim.")
        [['It snows.'], ['It rains.'], ['It snows.']]
    """

    kind: ClassVar[str] = "hard_negatives"

    ranks: tuple[int, int] = (0, 0)
    window: tuple[float, float] = (-1.0, 1.0)
    pick: Literal["top", "random"] = "top"
    search: Literal["block", "exact"] = "block"
    block: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cosine_window(self.window)
        if self.ranks != (0, 0) and not 0 <= self.ranks[0] <= self.ranks[1] - self.count:
            raise ValueError(f"ranks {list(self.ranks)} must be a range that holds at least count = {self.count}")
        check_least(self, 1, "block")

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, np.ndarray]:
        """See `MinedSpec`."""
        ids, corpus = np.array([row.id for row in rows]), index.searched
        if self.search == "block":
            candidates = self.random_block(self.block, rows, index, seed)
        else:
            candidates = without_copies(np.arange(len(corpus.keys)), corpus.keys)
        first, last = self.ranks if self.ranks[1] else (0, self.count)
        found = nearest(ids, candidates, corpus, size=last, window=open_bounds(self.window))
        pools = CandidatePools(ids=found.ids[:, first:last], cosine=found.cosine[:, first:last])
        if self.pick == "random":
            even, noise = np.zeros(pools.ids.shape), gumbel_noise(self.row_seeds(seed, rows), pools.ids)
            drawn = pools.at(draw(even, pools.valid, noise, count=self.count, temperature=1.0))
        else:
            drawn = CandidatePools(ids=pools.ids[:, : self.count], cosine=pools.cosine[:, : self.count])
        return drawn, pools.sizes
