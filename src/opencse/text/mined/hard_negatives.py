"""Hard negatives: the nearest sentences of the corpus, by rank, window or margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opencse.text.mined.candidate_pools import CandidatePools, nearest, random_block, scoring_memory, without_copies
from opencse.text.mined.faiss_index import FaissIndex, open_faiss
from opencse.text.mined.mined_spec import (
    CorpusIndex,
    DrawnSentences,
    MinedSpec,
    Miner,
    check_cosine_window,
    open_bounds,
)
from opencse.text.mined.selection import draw, gumbel_noise
from opencse.text.views.constructor import SourceRow, bundle_digest, row_seed
from opencse.text.views.sentence_store import CorpusAccess


@dataclass(frozen=True, kw_only=True)
class HardNegatives(MinedSpec):
    """Draw the nearest sentences of the corpus as negatives, also known as hard negative mining.

    The sentences within the window and the margins are sorted by cosine; from those with the given ranks, `count` are
    drawn: the nearest, or random ones. Copies of the sentence are never drawn.

    Attributes:
        ranks: First rank and the one after the last; the nearest has rank 0, so [10, 50] skips the ten nearest. [0, 0]
            stands for [0, count].
        window: Minimum and maximum cosine.
        positive: A column built earlier; the margins are measured from its cosine with the sentence. Without it they
            are measured from 1, the cosine of the sentence with itself.
        margin: Minimum difference between the cosines of the positive and of a negative.
        relative_margin: The same as a share of the positive's cosine; 0.05 requires a cosine at least 5 % below it
            (NV-Retriever's TopK-PercPos).
        pick: "top" for the nearest of the ranks, "random" for random ones.
        search: "block" searches a random block of the corpus, which 4,096 rows share; "exact" searches the whole
            corpus, in quadratic time; "faiss" queries an approximate index (extra `faiss`).
        block: Size of the random block.
        probes: Cells of the faiss index that are searched, out of about 4 sqrt(corpus size); more cells find more
            and take longer.

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
    positive: str = ""
    margin: float | None = None
    relative_margin: float | None = None
    pick: Literal["top", "random"] = "top"
    search: Literal["block", "exact", "faiss"] = "block"
    block: int = 10_000
    probes: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cosine_window(self.window)
        if self.ranks != (0, 0) and not 0 <= self.ranks[0] <= self.ranks[1] - self.count:
            raise ValueError(f"ranks {list(self.ranks)} must be a range that holds at least count = {self.count}")
        if self.block < 1 or self.probes < 1:
            raise ValueError("block and probes must be at least 1")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column of the positive, if there is one."""
        return (self.positive,) if self.positive else ()

    @property
    def span(self) -> tuple[int, int]:
        """First rank, and the one after the last."""
        return self.ranks if self.ranks[1] else (0, self.count)

    def memory(self, rows: int, dimension: int) -> int:
        """See `MinedSpec`."""
        candidates = min(self.block, rows) if self.search == "block" else rows
        mapped = rows * dimension * 4 if self.search == "faiss" else 0  # the index, shared by all processes
        return scoring_memory(min(self.unit, rows), dimension, self.span[1]) + candidates * 48 + mapped

    def prepare(self, corpus: CorpusAccess) -> Miner:
        """Embed the corpus and, for "faiss", build the index, unless they are in the cache."""
        prepared = super().prepare(corpus)
        if self.search == "faiss":
            open_faiss(prepared.index.vectors, self.probes, corpus.notify)
        return prepared

    def digest(self, index: CorpusIndex) -> str:
        """See `MinedSpec`."""
        weights = super().digest(index)
        if self.search != "faiss":
            return weights
        return bundle_digest(weights, FaissIndex(index.vectors, self.probes).meta["sha256"])

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> DrawnSentences:
        """See `MinedSpec`."""
        ids = np.array([row.id for row in rows])
        anchors = index.vectors.take(ids)
        low, high = self._bounds(rows, anchors, index)
        pools = self._nearest(ids, anchors, low, high, index, seed)
        first, last = self.span
        pools = CandidatePools(ids=pools.ids[:, first:last], cosine=pools.cosine[:, first:last])
        ids, cosine = pools.ids, pools.cosine
        if self.pick == "random":
            seeds = np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)
            even, noise = np.zeros(ids.shape), gumbel_noise(seeds, ids)
            places = draw(even, pools.valid, noise, count=self.count, temperature=1.0)
            ids = np.where(places >= 0, np.take_along_axis(ids, places, axis=1), -1)
            cosine = np.take_along_axis(cosine, places, axis=1)
        widths = ((0, 0), (0, max(0, self.count - ids.shape[1])))
        return DrawnSentences(
            ids=np.pad(ids[:, : self.count], widths, constant_values=-1),
            cosine=np.pad(cosine[:, : self.count], widths),
            sizes=pools.sizes,
        )

    def _bounds(self, rows: Sequence[SourceRow], anchors: np.ndarray, index: CorpusIndex) -> tuple[float, np.ndarray]:
        """Return the minimum cosine, and the maximum of each row; -inf for a row that lacks its positive."""
        low, high = open_bounds(self.window)
        limit = np.full(len(rows), high)
        if self.margin is None and self.relative_margin is None:
            return low, limit
        positive, valid = np.ones(len(rows)), np.ones(len(rows), dtype=bool)
        if self.positive:
            texts = [row.views.get(self.positive) for row in rows]
            valid = np.array([text is not None for text in texts])
            vectors = index.embed([text for text in texts if text is not None])
            positive[valid] = (anchors[valid] * vectors).sum(axis=1)
        if self.margin is not None:
            limit = np.minimum(limit, positive - self.margin)
        if self.relative_margin is not None:
            limit = np.minimum(limit, positive - np.abs(positive) * self.relative_margin)
        return low, np.where(valid, limit, -np.inf)

    def _nearest(
        self, ids: np.ndarray, anchors: np.ndarray, low: float, high: np.ndarray, index: CorpusIndex, seed: int
    ) -> CandidatePools:
        keys, size = index.sentences.keys, self.span[1]
        if self.search == "faiss":
            return FaissIndex(index.vectors, self.probes).nearest(anchors, keys[ids], keys, size, low, high)
        if self.search == "block":
            unit = SourceRow(id=int(ids[0]) // self.unit, text="")
            candidates = random_block(len(keys), self.block, row_seed(seed, f"{self.kind} block", unit))
        else:
            candidates = np.arange(len(keys))
        candidates = without_copies(candidates, np.asarray(keys[candidates]))
        return nearest(
            anchors, keys[ids], candidates, keys[candidates], index.vectors.take, size=size, low=low, high=high
        )
