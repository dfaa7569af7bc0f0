"""Base classes of the kinds that draw sentences by their embeddings, and the index of a corpus that they search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from opencse.foundation.numbers import check_least
from opencse.text.mined.candidate_pools import CandidatePools, SearchedCorpus, random_block, without_copies
from opencse.text.mined.vectors import Embedding, Pooling, Vectors, open_vectors
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views.constructor import BuiltView, ConstructorSpec, FunctionConstructor, SourceRow, row_seed
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore


@dataclass(frozen=True, kw_only=True)
class EmbeddingSpec(ConstructorSpec):
    """Base class of the kinds that draw several sentences by their embeddings.

    Attributes:
        model: The encoder: folder, hub id or bundled name; "backbone" for the model to be trained.
        count: m, the number of sentences per row, in the columns NAME_1, …, NAME_m.
        pooling: Pooling of a plain transformers encoder, which has none of its own.
        precision: Precision of the encoder's forward pass; "auto" is resolved when a build begins.
    """

    scores: ClassVar[Mapping[str, str]] = {"cosine": "float", "mer": "float", "overlap": "float", "candidates": "int"}

    model: str
    count: int = 2
    pooling: Pooling = "backbone"
    precision: Literal["auto", "bf16", "fp32"] = "auto"

    def __post_init__(self) -> None:
        check_least(self, 1, "count")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return NAME_1, …, NAME_m."""
        return tuple(f"{name}_{k + 1}" for k in range(self.count))

    def row_seeds(self, seed: int, rows: Sequence[SourceRow]) -> np.ndarray:
        """Return the seeds of the rows' draws, uint64 (n,)."""
        return np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)


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
        embedding = Embedding(self.model, self.precision, self.pooling, corpus.models.get(self.model))
        vectors = open_vectors(corpus.sentences, embedding, corpus.engine)
        return CorpusIndex(sentences=corpus.sentences, vectors=vectors)

    def open(self, *, seed: int = 0, prepared: CorpusIndex | None = None) -> FunctionConstructor:
        """Return the miner; files are mapped when they are read."""
        assert prepared is not None
        return FunctionConstructor(
            build=partial(self._mined, index=prepared, seed=seed), digest=prepared.vectors.weights_hash
        )

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, np.ndarray]:
        """Draw for the rows of one unit; the result depends only on the corpus, the options and the seed.

        Returns:
            The sentences drawn for each row, up to m, and the size of the pool that they were drawn from, int64 (a,).
        """
        raise NotImplementedError

    def random_block(self, size: int, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> np.ndarray:
        """Return the numbers of random sentences, without copies, that the rows of a unit share as candidates."""
        keys, unit = index.sentences.keys, SourceRow(id=rows[0].id // self.unit, text="")
        return without_copies(random_block(len(keys), size, row_seed(seed, f"{self.kind} block", unit)), keys)

    def _mined(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> list[list[BuiltView]]:
        """Draw for each row."""
        drawn, pool_sizes = self.draw(rows, index, seed)
        row, place = np.nonzero(drawn.valid)  # positions are filled from the first
        ids, sizes = drawn.ids[row, place], pool_sizes.tolist()
        texts = index.sentences.take(ids)
        out: list[list[BuiltView]] = [[] for _ in rows]
        scored = surface_scores([rows[i].text for i in row.tolist()], texts, drawn.cosine[row, place])
        for i, number, text, values in zip(row.tolist(), ids.tolist(), texts, scored, strict=True):
            out[i].append(BuiltView(text=text, rule=f"row {number}", scores={**values, "candidates": sizes[i]}))
        for views, size in zip(out, sizes, strict=True):
            rule = "pool exhausted" if size else "empty pool"
            none = BuiltView(text=None, rule=rule, scores={"candidates": size})
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
