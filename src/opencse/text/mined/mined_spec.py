"""Base class of the kinds that draw sentences from the whole corpus, and the index that they search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from opencse.foundation.unit_rows import unit_rows
from opencse.text.mined.vectors import Embedding, Pooling, Vectors, open_vectors
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore

if TYPE_CHECKING:
    from opencse.encoder.embedder import Embedder

BLOCK_ROWS = 4096  # rows that share a block of candidates
SCORES = {"cosine": "float", "mer": "float", "overlap": "float", "candidates": "int"}


@dataclass(frozen=True, kw_only=True)
class DrawnSentences:
    """Sentences drawn for `a` rows, up to m each.

    Attributes:
        ids: Numbers of sentences, int64 (a, m); -1 if the pool was exhausted.
        cosine: Cosine similarity of row and sentence, float32 (a, m).
        sizes: Size of the candidate pool of each row, (a,).
    """

    ids: np.ndarray
    cosine: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CorpusIndex:
    """Texts and vectors of the corpus, by number. Pickling sends only paths and options."""

    sentences: SentenceStore
    vectors: Vectors
    embedding: Embedding

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors of other texts, float32 (n, d)."""
        return unit_rows(self._embedder.encode(texts))

    @cached_property
    def _embedder(self) -> Embedder:
        return self.embedding.embedder()

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k != "_embedder"}


@dataclass(frozen=True, kw_only=True)
class MinedSpec(ConstructorSpec):
    """Base class of the kinds that draw sentences of the corpus by their embeddings.

    Attributes:
        model: The encoder: folder, hub id or bundled name; "backbone" for the model to be trained.
        count: m, the number of sentences per row, in the columns NAME_1, …, NAME_m.
        pooling: Pooling of a plain transformers encoder, which has none of its own.
        precision: Precision of the encoder's forward pass; "auto" is resolved when a build begins.
    """

    scores: ClassVar[Mapping[str, str]] = SCORES
    unit: ClassVar[int] = BLOCK_ROWS

    model: str
    count: int = 2
    pooling: Pooling = "backbone"
    precision: Literal["auto", "bf16", "fp32"] = "auto"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return NAME_1, …, NAME_m."""
        return tuple(f"{name}_{k + 1}" for k in range(self.count))

    def prepare(self, corpus: CorpusAccess) -> Miner:
        """Embed the corpus, unless its vectors are in the cache, and report the memory that mining needs."""
        embedding = Embedding(self.model, self.precision, self.pooling, corpus.models.get(self.model))
        vectors = open_vectors(corpus.sentences, embedding, corpus.engine, progress=corpus.progress)
        disk = len(vectors) * vectors.dimension * 2 / 2**20
        memory = self.memory(len(vectors), vectors.dimension) / 2**20
        corpus.notify(
            f"mining {self.kind}: {len(vectors):,} sentences, {disk:,.0f} MiB of vectors on disk, "
            f"at most {memory:,.0f} MiB of memory for each of {corpus.engine.workers} workers"
        )
        return Miner(self, CorpusIndex(sentences=corpus.sentences, vectors=vectors, embedding=embedding))

    def memory(self, rows: int, dimension: int) -> int:
        """Return the maximum memory of mining in one process, in bytes, excluding libraries and mapped files."""
        raise NotImplementedError

    def digest(self, index: CorpusIndex) -> str:
        """Return a hash of everything that the draw depends on in addition to texts, options and seed."""
        return index.vectors.weights_hash

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> DrawnSentences:
        """Draw for the rows of one unit; the result depends only on the corpus, the options and the seed."""
        raise NotImplementedError


class Miner:
    """A `MinedSpec` and the index that it draws from, prepared or opened."""

    def __init__(self, spec: MinedSpec, index: CorpusIndex, seed: int = 0) -> None:
        self.spec, self.index, self._seed = spec, index, seed

    def open(self, *, seed: int = 0, workers: int = 1) -> Miner:
        """Return the miner with its seed; files are mapped when they are read."""
        return Miner(self.spec, self.index, seed)

    @property
    def digest(self) -> str:
        """Hash of everything that the draw depends on in addition to texts, options and seed."""
        return self.spec.digest(self.index)

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Draw for each row."""
        out: list[list[BuiltView]] = []
        start = 0
        while start < len(rows):
            unit = rows[start].id // BLOCK_ROWS
            stop = next((i for i in range(start, len(rows)) if rows[i].id // BLOCK_ROWS != unit), len(rows))
            out += self._views(rows[start:stop])
            start = stop
        return out

    def _views(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        draw = self.spec.draw(rows, self.index, self._seed)
        row, place = np.nonzero(draw.ids >= 0)  # positions are filled from the first
        ids = draw.ids[row, place]
        texts = self.index.sentences.take(ids)
        sizes = draw.sizes.tolist()
        out: list[list[BuiltView]] = [[] for _ in rows]
        scored = surface_scores([rows[i].text for i in row.tolist()], texts, draw.cosine[row, place])
        for i, number, text, values in zip(row.tolist(), ids.tolist(), texts, scored, strict=True):
            out[i].append(BuiltView(text=text, rule=f"row {number}", scores={**values, "candidates": sizes[i]}))
        for views, size in zip(out, sizes, strict=True):
            if len(views) < self.spec.count:
                rule = "pool exhausted" if size else "empty pool"
                none = BuiltView(text=None, rule=rule, scores={"candidates": size})
                views += [none] * (self.spec.count - len(views))
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
