"""Base class of the kinds that draw sentences of the corpus by their embeddings, and the index that they search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from opencse.text.mined.candidate_pools import CandidatePools, SearchedCorpus, random_block, without_copies
from opencse.text.mined.vectors import EmbeddingSpec, Vectors, open_vectors
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views.constructor import BuiltView, FunctionConstructor, SourceRow, row_seed
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore

Counts = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class CorpusIndex:
    """Texts and vectors of the corpus, by number. Pickling sends only paths."""

    sentences: SentenceStore
    vectors: Vectors

    @property
    def searched(self) -> SearchedCorpus:
        """Keys and vectors."""
        return SearchedCorpus(self.sentences.keys, self.vectors.take)


@dataclass(frozen=True, kw_only=True)
class MinedSpec(EmbeddingSpec):
    """Base class of the kinds that draw from the sentences of the whole corpus; the rows of a unit share a block."""

    unit: ClassVar[int] = 4096

    def prepare(self, corpus: CorpusAccess) -> CorpusIndex:
        """Embed the corpus, unless its vectors are in the cache."""
        vectors = open_vectors(corpus.sentences, self, self.embedder(corpus.models), corpus.engine)
        return CorpusIndex(sentences=corpus.sentences, vectors=vectors)

    def open(self, *, seed: int = 0, prepared: CorpusIndex | None = None) -> FunctionConstructor:
        """Return the miner; files are mapped when they are read."""
        assert prepared is not None
        return FunctionConstructor(
            build=partial(self._mined, index=prepared, seed=seed), digest=prepared.vectors.weights_hash
        )

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, Counts]:
        """Draw for the rows of one unit; the result depends only on the corpus, the options and the seed.

        Returns:
            The sentences drawn for each row, up to m, and counts that are recorded as scores, int64 (a,) each;
            `candidates` is the size of the pool that they were drawn from.
        """
        raise NotImplementedError

    def random_block(self, size: int, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> np.ndarray:
        """Return the numbers of random sentences, without copies, that the rows of a unit share as candidates."""
        keys, unit = index.sentences.keys, SourceRow(id=rows[0].id // self.unit, text="")
        return without_copies(random_block(len(keys), size, row_seed(seed, f"{self.kind} block", unit)), keys)

    def _mined(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> list[list[BuiltView]]:
        """Draw for each row."""
        drawn, counts = self.draw(rows, index, seed)
        row, place = np.nonzero(drawn.valid)  # positions are filled from the first
        ids = drawn.ids[row, place]
        counted = [dict(zip(counts, each, strict=True)) for each in np.stack([*counts.values()], axis=1).tolist()]
        texts = index.sentences.take(ids)
        out: list[list[BuiltView]] = [[] for _ in rows]
        scored = surface_scores([rows[i].text for i in row.tolist()], texts, drawn.cosine[row, place])
        for i, number, text, values in zip(row.tolist(), ids.tolist(), texts, scored, strict=True):
            out[i].append(BuiltView(text=text, rule=f"row {number}", scores={**values, **counted[i]}))
        for views, scores in zip(out, counted, strict=True):
            rule = "pool exhausted" if scores["candidates"] else "empty pool"
            none = BuiltView(text=None, rule=rule, scores=scores)
            views += [none] * (self.count - len(views))
        return out


def surface_scores(anchors: Sequence[str], others: Sequence[str], cosine: np.ndarray) -> list[dict[str, float]]:
    """Return the scores of each drawn text: cosine, match error rate and lexical overlap.

    Args:
        anchors: n texts.
        others: The text that was drawn for each.
        cosine: Their cosine similarity, (n,).
    """
    rates = match_error_rate(anchors, others)
    overlaps = lexical_overlap(anchors, others)
    values = zip(cosine.tolist(), rates.tolist(), overlaps.tolist(), strict=True)
    return [{"cosine": c, "mer": rate, "overlap": overlap} for c, rate, overlap in values]


def check_cosine_window(window: tuple[float, float]) -> None:
    """Raise ValueError if a window of cosines is not a range within [-1, 1]."""
    if not -1 <= window[0] <= window[1] <= 1:
        raise ValueError(f"window must be a range within [-1, 1], not {list(window)} (DebCSE: [0.25, 0.75])")


def open_bounds(window: tuple[float, float]) -> tuple[float, float]:
    """Return the window with its ends at -1 and 1 opened, as a rounded cosine may lie just beyond."""
    return (window[0] if window[0] > -1 else -np.inf, window[1] if window[1] < 1 else np.inf)
