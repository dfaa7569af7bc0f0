"""Hard negatives: the nearest sentences of the corpus, by rank and window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from opencse.foundation.numbers import unit_rows
from opencse.text.mined.candidate_pools import CandidatePools, draw, gumbel_noise, nearest
from opencse.text.mined.vectors import CorpusIndex, Counts, MinedSpec
from opencse.text.views.constructor import SourceRow

if TYPE_CHECKING:
    from opencse.encoder.embedder import Embedder


@dataclass(frozen=True, kw_only=True)
class HardNegatives(MinedSpec):
    """Draw the nearest sentences of the corpus as negatives, also known as hard negative mining.

    The sentences within the window are sorted by cosine; from those with the given ranks, `count` are
    drawn: the nearest, or random ones. Copies of the sentence are never drawn.

    Attributes:
        ranks: First rank and the one after the last; the nearest has rank 0, so [10, 50] skips the ten nearest. [0, 0]
            stands for [0, count].
        pick: "top" for the nearest of the ranks, "random" for random ones.
        positive: A column that is built before, with the positive of each sentence, for `max_ratio`.
        max_ratio: Candidates whose cosine exceeds this share of the positive's are skipped as likely false negatives,
            and have no rank (`relative_margin` of sentence-transformers is 1 minus it; TopK-PercPos of NV-Retriever,
            Moreira et al., 2024, uses 0.95). A sentence without a positive has no limit.

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

    kind = "hard_negatives"
    scores: ClassVar[Mapping[str, str]] = {**MinedSpec.scores, "skipped": "int"}

    ranks: tuple[int, int] = (0, 0)
    pick: Literal["top", "random"] = "top"
    positive: str = ""
    max_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranks != (0, 0) and not 0 <= self.ranks[0] <= self.ranks[1] - self.count:
            raise ValueError(f"ranks {list(self.ranks)} must be a range that holds at least count = {self.count}")
        if bool(self.positive) != (self.max_ratio is not None):
            raise ValueError("max_ratio and positive, the column whose cosine it is a share of, go together")
        if self.max_ratio is not None and not 0 < self.max_ratio <= 1:
            raise ValueError(f"max_ratio must be a share above 0, up to 1, not {self.max_ratio}")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column of the positives."""
        return (self.positive,) if self.positive else ()

    @cached_property
    def _opened(self) -> Embedder:
        return self.embedder()

    def _limits(self, rows: Sequence[SourceRow], anchors: np.ndarray) -> np.ndarray | None:
        """Return the maximum cosine of each row's candidates, float32 (a,), given the vectors of the rows."""
        if self.max_ratio is None:
            return None
        limits = np.full(len(rows), np.inf, dtype=np.float32)
        texts = {i: text for i, row in enumerate(rows) if (text := row.views[self.positive]) is not None}
        cosine = (anchors[[*texts]] * unit_rows(self._opened([*texts.values()]))).sum(axis=1)
        limits[[*texts]] = cosine - np.abs(cosine) * np.float32(1 - self.max_ratio)
        return limits

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        ids, keys, take = np.array([row.id for row in rows]), index.sentences.keys, index.vectors.take
        candidates = self.random_block(rows, index, seed)
        first, last = self.ranks if self.ranks[1] else (0, self.count)
        limits = self._limits(rows, take(ids))
        found, skipped = nearest(ids, candidates, keys, take, size=last, window=self.bounds, limits=limits)
        pools = CandidatePools(ids=found.ids[:, first:last], cosine=found.cosine[:, first:last])
        if self.pick == "random":
            even, noise = np.zeros(pools.ids.shape), gumbel_noise(self.row_seeds(seed, rows), pools.ids)
            drawn = pools.at(draw(even, pools.valid, noise, count=self.count, temperature=1.0))
        else:
            drawn = CandidatePools(ids=pools.ids[:, : self.count], cosine=pools.cosine[:, : self.count])
        return drawn, {"candidates": pools.sizes, "skipped": skipped}
