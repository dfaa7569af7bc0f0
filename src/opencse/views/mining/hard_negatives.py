"""Hard negatives: the nearest sentences of the corpus, by rank, window or margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opencse.views.constructor import SourceRow, bundle_digest, row_seed
from opencse.views.mining.faiss_index import FaissIndex, open_faiss
from opencse.views.mining.mined_spec import Draw, Index, MinedSpec, Prepared, bounds, check_window
from opencse.views.mining.pools import Pools, nearest, random_block, scoring_memory, without_copies
from opencse.views.mining.scores import draw, gumbel
from opencse.views.sentence_store import CorpusAccess


@dataclass(frozen=True, kw_only=True)
class HardNegatives(MinedSpec):
    """Take the nearest sentences as negatives.

    Of the sentences within the window and the margins, sorted by cosine, those of the ranks are kept, and `count` of
    them taken: the nearest, or at random. Copies of the sentence never count.

    Attributes:
        ranks: First and last rank that is kept, the nearest being 0 and the last one not included: [10, 50] skips
            ten. [0, 0] for as many as are taken.
        window: Least and greatest cosine.
        positive: A column built before: margins count from its cosine. Without it they count from 1, the sentence
            itself.
        margin: How much less similar than the positive a negative is at least.
        relative_margin: The same as a share of the positive's cosine: 0.05 keeps what is at least 5 % below it
            (NV-Retriever's TopK-PercPos).
        pick: The nearest ones of the ranks, or any by chance.
        search: "block" looks in a random block of the corpus, the same for 4,096 rows; "exact" looks everywhere, which
            takes time quadratic in the corpus; "faiss" asks an index (extra `faiss`) and may miss some.
        block: Size of the random block.
        probes: Cells of the faiss index that are looked into, of about 4 sqrt(corpus size): more find more.
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
        check_window(self.window)
        if self.ranks != (0, 0) and not 0 <= self.ranks[0] <= self.ranks[1] - self.count:
            raise ValueError(f"ranks {list(self.ranks)} must be a range that holds at least count = {self.count}")
        if self.block < 1 or self.probes < 1:
            raise ValueError("block and probes must be at least 1")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column of the positive."""
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

    def prepare(self, corpus: CorpusAccess) -> Prepared:
        """Embed the corpus and, for "faiss", build the index, unless they are in the cache."""
        prepared = super().prepare(corpus)
        if self.search == "faiss":
            open_faiss(prepared.index.vectors, self.probes, corpus.notify)
        return prepared

    def digest(self, index: Index) -> str:
        """See `MinedSpec`."""
        weights = super().digest(index)
        if self.search != "faiss":
            return weights
        return bundle_digest(weights, FaissIndex(index.vectors, self.probes).meta["sha256"])

    def draw(self, rows: Sequence[SourceRow], index: Index, seed: int) -> Draw:
        """See `MinedSpec`."""
        ids = np.array([row.id for row in rows])
        anchors = index.vectors.take(ids)
        low, high = self._bounds(rows, anchors, index)
        found = self._found(ids, anchors, low, high, index, seed)
        first, last = self.span
        found = Pools(ids=found.ids[:, first:last], cosine=found.cosine[:, first:last])
        if self.pick == "random":
            seeds = np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)
            even = np.zeros(found.ids.shape)
            places = draw(even, found.there, gumbel(seeds, found.ids), count=self.count, temperature=1.0)
            drawn = places >= 0
            taken = Pools(
                ids=np.where(drawn, np.take_along_axis(found.ids, places, axis=1), -1),
                cosine=np.take_along_axis(found.cosine, places, axis=1),
            )
        else:
            taken = found
        short = self.count - taken.ids.shape[1]
        widths = ((0, 0), (0, max(0, short)))
        return Draw(
            ids=np.pad(taken.ids[:, : self.count], widths, constant_values=-1),
            cosine=np.pad(taken.cosine[:, : self.count], widths),
            sizes=found.sizes,
        )

    def _bounds(self, rows: Sequence[SourceRow], anchors: np.ndarray, index: Index) -> tuple[float, np.ndarray]:
        """Least cosine, and the greatest of each row; -inf where there should be a positive and is none."""
        low, high = bounds(self.window)
        limit = np.full(len(rows), high)
        if self.margin is None and self.relative_margin is None:
            return low, limit
        positive, there = np.ones(len(rows)), np.ones(len(rows), dtype=bool)
        if self.positive:
            texts = [row.views.get(self.positive) for row in rows]
            there = np.array([text is not None for text in texts])
            vectors = index.embed([text for text in texts if text is not None])
            positive[there] = (anchors[there] * vectors).sum(axis=1)
        if self.margin is not None:
            limit = np.minimum(limit, positive - self.margin)
        if self.relative_margin is not None:
            limit = np.minimum(limit, positive - np.abs(positive) * self.relative_margin)
        return low, np.where(there, limit, -np.inf)

    def _found(
        self, ids: np.ndarray, anchors: np.ndarray, low: float, high: np.ndarray, index: Index, seed: int
    ) -> Pools:
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
