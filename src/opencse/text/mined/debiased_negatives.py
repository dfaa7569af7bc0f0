"""Debiased negatives: a weighted draw from sentences whose similarity lies in a window (DebCSE §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opencse.text.mined.candidate_pools import CandidatePools, in_window, random_block, scoring_memory, without_copies
from opencse.text.mined.mined_spec import CorpusIndex, DrawnSentences, MinedSpec, check_cosine_window, open_bounds
from opencse.text.mined.selection import Mode, check_draw, draw_from_pools, gumbel_noise
from opencse.text.surface import edit_units
from opencse.text.views.constructor import SourceRow, row_seed

_ENCODED = 40_000  # texts whose words are held in memory at a time


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(MinedSpec):
    """Draw negatives with a similar surface form and a different meaning.

    The candidate pool of a sentence is a random sample of the sentences whose cosine lies in the window, from a random
    block of the corpus. Negatives are drawn from it without replacement, by `opencse.text.mined.selection`. Source:
    Miao et al., DebCSE (CIKM 2023), §4.1.

    Attributes:
        model: The encoder; DebCSE uses an unsupervised SimCSE model.
        count: Number of negatives per row (DebCSE: 2).
        window: Minimum and maximum cosine of a candidate (DebCSE: 0.25 and 0.75).
        weight: λ_n, the share of meaning in the selection score (DebCSE: 0.8).
        mode: "sound", or "faithful" for the paper's literal scores.
        temperature: Temperature of the draw; 0 takes the best. By default 1 for "faithful", as published, else 0.1.
        pool: n, the maximum size of a candidate pool; the paper does not give it.
        block: Number of sentences that are scored for each row; 4,096 rows share a block. If it is at least the size
            of the corpus, all pairs are scored.
        edits: Unit of the edit distance, "word" or "character".

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
    weight: float = 0.8
    mode: Mode = "sound"
    temperature: float | None = None
    pool: int = 200
    block: int = 10_000
    edits: Literal["word", "character"] = "word"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cosine_window(self.window)
        check_draw(self.weight, self.temperature)
        if self.pool < 1 or self.block < 1:
            raise ValueError("pool and block must be at least 1")

    def memory(self, rows: int, dimension: int) -> int:
        """See `MinedSpec`."""
        block, a = min(self.block, rows), min(self.unit, rows)
        pool = min(self.pool, block)
        step = a if block <= _ENCODED else max(1, _ENCODED // pool)
        drawn = step * pool * 120 + min(block, _ENCODED) * 3000  # scores of all candidates, and words of their texts
        return a * pool * 12 + block * 48 + max(scoring_memory(a, dimension, pool), drawn)

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> DrawnSentences:
        """See `MinedSpec`."""
        unit = SourceRow(id=rows[0].id // self.unit, text="")
        keys = index.sentences.keys
        block = random_block(len(index.sentences), self.block, row_seed(seed, f"{self.kind} block", unit))
        block = without_copies(block, keys[block])
        ids = np.array([row.id for row in rows])
        low, high = open_bounds(self.window)
        pools = in_window(
            index.vectors.take(ids),
            keys[ids],
            block,
            keys[block],
            index.vectors.take,
            size=min(self.pool, len(block)),
            window=(low, high),
        )
        seeds = np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)
        places = np.full((len(rows), self.count), -1, dtype=np.int64)
        step = len(rows) if len(block) <= _ENCODED else max(1, _ENCODED // pools.ids.shape[1])
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            part_pools = CandidatePools(ids=pools.ids[part], cosine=pools.cosine[part])
            places[part] = self._places(ids[part], part_pools, seeds[part], index)
        drawn = places >= 0
        return DrawnSentences(
            ids=np.where(drawn, np.take_along_axis(pools.ids, places, axis=1), -1),
            cosine=np.take_along_axis(pools.cosine, places, axis=1),
            sizes=pools.sizes,
        )

    def _places(self, ids: np.ndarray, pools: CandidatePools, seeds: np.ndarray, index: CorpusIndex) -> np.ndarray:
        """Return the positions that are drawn from the pool of each row, (a, m)."""
        used, place = np.unique(np.concatenate((ids, pools.ids[pools.valid])), return_inverse=True)
        texts = edit_units(index.sentences.take(used), self.edits)
        anchors, members = place[: len(ids)], np.full(pools.ids.shape, -1)
        members[pools.valid] = place[len(ids) :]
        noise = gumbel_noise(seeds, pools.ids)
        return draw_from_pools(self, "negative", texts, anchors, members, pools.cosine, noise)
