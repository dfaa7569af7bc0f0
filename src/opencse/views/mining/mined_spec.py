"""What all constructors share that draw sentences from the whole corpus: an index, made once, and the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from opencse.surface import lexical_overlap, match_error_rate
from opencse.views.constructor import BuiltView, ConstructorSpec, SourceRow
from opencse.views.mining.vectors import Embedding, Pooling, Vectors, open_vectors, unit_vectors
from opencse.views.sentence_store import CorpusAccess, Sentences

if TYPE_CHECKING:
    from opencse.encoder.embedder import Embedder

UNIT = 4096  # rows that share a block of candidates, and one matrix product
SCORES = {"cosine": "float", "mer": "float", "overlap": "float", "candidates": "int"}


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was drawn for a rows.

    Attributes:
        ids: Numbers of sentences, int64 (a, m), -1 where the pool was used up.
        cosine: Of row and sentence, float32 (a, m).
        sizes: Candidates of each row, (a,).
    """

    ids: np.ndarray
    cosine: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Index:
    """The corpus by number: texts and vectors. Pickling sends paths and parameters alone."""

    sentences: Sentences
    vectors: Vectors
    embedding: Embedding

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of other texts, float32 (n, d)."""
        return unit_vectors(self._embedder.encode(texts))

    @cached_property
    def _embedder(self) -> Embedder:
        return self.embedding.embedder()

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k != "_embedder"}


@dataclass(frozen=True, kw_only=True)
class MinedSpec(ConstructorSpec):
    """Draw sentences of the corpus, under a given encoder.

    Attributes:
        model: The encoder: folder, hub id or bundled name.
        count: m, sentences that are drawn for each row: the columns NAME_1, …, NAME_m.
        pooling: The encoder's; for a plain transformers encoder, which has none of its own.
        precision: Of the encoder's forward pass; `auto` is settled when a build begins.
    """

    scores: ClassVar[Mapping[str, str]] = SCORES
    unit: ClassVar[int] = UNIT

    model: str
    count: int = 2
    pooling: Pooling = "backbone"
    precision: Literal["auto", "bf16", "fp32"] = "auto"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")

    def columns(self, name: str) -> tuple[str, ...]:
        """NAME_1, …, NAME_m."""
        return tuple(f"{name}_{k + 1}" for k in range(self.count))

    def prepare(self, corpus: CorpusAccess) -> Prepared:
        """Embed the corpus, unless its vectors are in the cache."""
        embedding = Embedding(model=self.model, precision=self.precision, pooling=self.pooling)
        vectors = open_vectors(corpus.sentences, embedding, corpus.engine, progress=corpus.progress)
        disk = len(vectors) * vectors.dimension * 2 / 2**20
        memory = self.memory(len(vectors), vectors.dimension) / 2**20
        corpus.notify(
            f"mining {self.kind}: {len(vectors):,} sentences, {disk:,.0f} MiB of vectors on disk, "
            f"at most {memory:,.0f} MiB of memory for each of {corpus.engine.workers} workers"
        )
        return Prepared(self, Index(sentences=corpus.sentences, vectors=vectors, embedding=embedding))

    def memory(self, rows: int, dimension: int) -> int:
        """Bytes that mining needs at most in one process, beside libraries and what the system maps of files."""
        raise NotImplementedError

    def digest(self, index: Index) -> str:
        """A hash of what the draw depends on besides texts, parameters and seed."""
        return index.vectors.weights_hash

    def draw(self, rows: Sequence[SourceRow], index: Index, seed: int) -> Draw:
        """Draw for rows of one unit; the result depends on nothing but the corpus, the parameters and the seed."""
        raise NotImplementedError


class Prepared:
    """A `MinedSpec` and the index it draws from."""

    def __init__(self, spec: MinedSpec, index: Index) -> None:
        self.spec, self.index = spec, index

    def open(self, *, seed: int = 0, workers: int = 1) -> Miner:
        """Map the files."""
        return Miner(self.spec, self.index, seed)


class Miner:
    """An opened `MinedSpec`."""

    def __init__(self, spec: MinedSpec, index: Index, seed: int) -> None:
        self._spec, self._index, self._seed = spec, index, seed
        self.digest = spec.digest(index)

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Draw for each row."""
        out: list[list[BuiltView]] = []
        start = 0
        while start < len(rows):
            unit = rows[start].id // UNIT
            stop = next((i for i in range(start, len(rows)) if rows[i].id // UNIT != unit), len(rows))
            out += self._views(rows[start:stop])
            start = stop
        return out

    def _views(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        draw = self._spec.draw(rows, self._index, self._seed)
        row, place = np.nonzero(draw.ids >= 0)  # places are filled from the first
        ids = draw.ids[row, place]
        texts = self._index.sentences.take(ids)
        sizes = draw.sizes.tolist()
        out: list[list[BuiltView]] = [[] for _ in rows]
        scored = surface_scores([rows[i].text for i in row.tolist()], texts, draw.cosine[row, place])
        for i, number, text, values in zip(row.tolist(), ids.tolist(), texts, scored, strict=True):
            out[i].append(BuiltView(text=text, rule=f"row {number}", scores={**values, "candidates": sizes[i]}))
        for views, size in zip(out, sizes, strict=True):
            if len(views) < self._spec.count:
                none = BuiltView(text=None, rule="pool used up" if size else "empty pool", scores={"candidates": size})
                views += [none] * (self._spec.count - len(views))
        return out


def surface_scores(anchors: Sequence[str], others: Sequence[str], cosine: np.ndarray) -> list[dict[str, float]]:
    """Return what is recorded beside each drawn text: cosine, match error rate, lexical overlap."""
    rates = match_error_rate(anchors, others, workers=1)
    overlaps = lexical_overlap(anchors, others)
    values = zip(cosine.tolist(), rates.tolist(), overlaps.tolist(), strict=True)
    return [{"cosine": c, "mer": rate, "overlap": overlap} for c, rate, overlap in values]


def check_window(window: tuple[float, float]) -> None:
    """Raise ValueError where a window of cosines is not one."""
    if not -1 <= window[0] <= window[1] <= 1:
        raise ValueError(f"window must be a range within [-1, 1], not {list(window)} (DebCSE: [0.25, 0.75])")


def bounds(window: tuple[float, float]) -> tuple[float, float]:
    """Return the window, without an end at -1 or 1: a rounded cosine may lie just beyond."""
    return (window[0] if window[0] > -1 else -np.inf, window[1] if window[1] < 1 else np.inf)
