"""The embeddings of a corpus on disk, and the kinds that draw sentences with them.

Vectors are written once per model, memory-mapped, and read by number. The folder's name is a hash
of the texts, the precision and everything of the model that determines the vectors: its weights,
tokenizer, pooling and more (`opencse.encoder.backbone`). So vectors of another model are never
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from opencse.foundation.cache import cache_place, key_hash
from opencse.foundation.files import replaced
from opencse.foundation.numbers import check_least, unit_rows
from opencse.foundation.progress import Phase
from opencse.foundation.workers import visible_gpus
from opencse.text.mined.approximate import build_index, open_index, search
from opencse.text.mined.candidate_pools import (
    CandidatePools,
    draw,
    gumbel_noise,
    nearest,
    random_block,
    without_copies,
)
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views.registry import (
    OpenedView,
    SentenceStore,
    SourceRow,
    View,
    ViewText,
    row_seed,
)

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone
    from opencse.encoder.embedder import Embedder
    from opencse.foundation.workers import Engine


Pooling = Literal["backbone", "cls", "mean", "lasttoken", "first_last", "last_two", "ngrams"]

# Texts embedded in one call, and vectors in a file.
CHUNK = 8192
_VERSION = 3


@dataclass(frozen=True)
class Vectors:
    """Unit vectors of a corpus, float16 on disk in shards of equal size; pickled as a path.

    Rounding to float16 changes a cosine by less than 0.0005.

    Attributes:
        folder: Place of the shards.
        weights_hash: Hash of the model.
        dimension: d.
        sentences: The corpus.
    """

    folder: Path
    weights_hash: str
    dimension: int
    sentences: SentenceStore

    @property
    def shards(self) -> list[range]:
        """The numbers of the rows of each shard."""
        rows = len(self.sentences)
        return [range(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]

    def has(self, shard: int) -> bool:
        """Return whether a shard was written and has the right size."""
        try:
            return _load(self._path(shard)).shape == (len(self.shards[shard]), self.dimension)
        except (OSError, ValueError, EOFError):
            return False

    def write(self, shard: int, vectors: np.ndarray) -> None:
        """Write a shard, completely or not at all."""
        with replaced(self._path(shard)) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(vectors, dtype=np.float16))

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors with the given numbers, float32 (n, d)."""
        out = np.empty((len(ids), self.dimension), dtype=np.float32)
        # In the order of the disk, which is read sequentially.
        order = np.argsort(ids, kind="stable")
        shard_of, rows = np.divmod(ids[order], CHUNK)
        for shard in np.unique(shard_of).tolist():
            start, end = np.searchsorted(shard_of, [shard, shard + 1])
            places = slice(start, end)
            out[order[places]] = _opened(self._path(shard))[rows[places]]
        return out

    def _path(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:05d}.npy"


_load = partial(np.load, mmap_mode="r")
# Limited, because each is an open file.
_opened = lru_cache(maxsize=256)(_load)


@dataclass(frozen=True, kw_only=True)
class MinedView(View):
    """Base class of the kinds that draw several sentences by their embeddings.

    Attributes:
        model: The encoder: folder, hub id or bundled name; "backbone" for the model to be trained.
        count: m, the number of sentences per row, in the columns NAME_1, …, NAME_m.
        pooling: Pooling of a plain transformers encoder, which has none of its own.
        precision: Precision of the encoder's forward pass; "auto" is resolved when a build begins.
    """

    scores: ClassVar[Mapping[str, str]] = {
        "cosine": "float",
        "mer": "float",
        "overlap": "float",
        "candidates": "int",
    }

    model: str
    count: int = 2
    pooling: Pooling = "backbone"
    precision: Literal["auto", "bf16", "fp32"] = "auto"

    def __post_init__(self) -> None:
        check_least(self, 1, "count")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return NAME_1, …, NAME_m."""
        return tuple(f"{name}_{k + 1}" for k in range(self.count))

    def _drawn_views(
        self,
        rows: Sequence[SourceRow],
        row: np.ndarray,
        chosen: Sequence[tuple[str, str]],
        cosine: np.ndarray,
        counts: Sequence[Mapping[str, int]],
        *,
        empty: str,
    ) -> list[list[ViewText]]:
        """Return the views of a rows: what was drawn for each, and nulls if its pool has no more.

        `row` has the index of the row of each text that was drawn, int64 (n,); `chosen` are the
        texts and their rules, and `counts` are scores of each row, of which `candidates` is the
        size of the pool. `empty` is the reason recorded if there is no candidate.
        """
        owners = row.tolist()
        anchors = [rows[i].text for i in owners]
        texts = [text for text, _ in chosen]
        cosines = cosine.tolist()
        rates = match_error_rate(anchors, texts).tolist()
        overlaps = lexical_overlap(anchors, texts).tolist()

        out: list[list[ViewText]] = [[] for _ in rows]
        for k, i in enumerate(owners):
            text, rule = chosen[k]
            scores = {"cosine": cosines[k], "mer": rates[k], "overlap": overlaps[k], **counts[i]}
            out[i].append(ViewText(text=text, rule=rule, scores=scores))
        for views, counted in zip(out, counts, strict=True):
            reason = "pool exhausted" if counted["candidates"] else empty
            none = ViewText(text=None, rule=reason, scores=counted)
            views += [none] * (self.count - len(views))
        return out

    def embedder(self, opened: Mapping[str, Backbone] = MappingProxyType({})) -> Embedder:
        """Return the encoder, ready to encode; it is loaded unless it is open already."""
        from opencse.encoder.backbone import Backbone
        from opencse.encoder.embedder import Embedder

        backbone = opened.get(self.model) or Backbone(self.model)
        model = backbone.encoder(self.pooling)
        # Batches, and so the last bits of a vector, must not depend on the number of cores.
        tokens = 1024 if model.device.type == "cpu" else 32768
        return Embedder(model, precision=self.precision, token_budget=tokens)

    def row_seeds(self, seed: int, rows: Sequence[SourceRow]) -> np.ndarray:
        """Return the seeds of the rows' draws, uint64 (n,)."""
        return np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)


def open_vectors(
    sentences: SentenceStore, spec: MinedView, embedder: Embedder, engine: Engine
) -> Vectors:
    """Open the vectors of a corpus in the cache, and embed the shards that are missing.

    Each shard is written completely or not at all, so an interrupted run continues with the first
    missing shard.

    Args:
        sentences: The corpus.
        spec: The encoder, by which workers load it.
        embedder: The encoder.
        engine: Runs the embedding of shards.
    """
    vectors = find_vectors(sentences, embedder)
    missing = [shard for shard in range(len(vectors.shards)) if not vectors.has(shard)]
    if missing:
        done = len(sentences) - sum(len(vectors.shards[shard]) for shard in missing)
        task = _EmbedShard(vectors, spec, embedder)
        with Phase("embedding", total=len(sentences), unit="sentences", initial=done) as phase:
            if engine.remote or len(visible_gpus()) > 1:
                results = engine.map(task, missing)
            else:
                # In this process the embedder uses the one GPU, or all cores by its own threads.
                results = ((shard, task(shard)) for shard in missing)
            for _, rows in results:
                phase.update(rows)
    return vectors


def find_vectors(sentences: SentenceStore, embedder: Embedder) -> Vectors:
    """Return the vectors of a corpus in the cache, of which shards may be missing.

    `embedder` is the loaded model.
    """
    encoder = embedder.key()
    key = [_VERSION, *encoder, sentences.texts_hash]
    return Vectors(cache_place("vectors", key_hash(key)), encoder[0], embedder.dimension, sentences)


class _EmbedShard:
    """The task of a worker: embed one shard and write it; the model is opened in the worker."""

    uses_gpu = True

    def __init__(self, vectors: Vectors, spec: MinedView, embedder: Embedder) -> None:
        self._vectors = vectors
        self._spec = spec
        self._embedder: Embedder | None = embedder

    def __getstate__(self) -> dict[str, Any]:
        # A worker opens the model itself.
        return {**self.__dict__, "_embedder": None}

    def open(self) -> None:
        self._embedder = self._embedder or self._spec.embedder()

    def __call__(self, shard: int) -> int:
        assert self._embedder is not None
        rows = self._vectors.shards[shard]
        texts = self._vectors.sentences.range(rows.start, rows.stop)
        self._vectors.write(shard, unit_rows(self._embedder.encode(texts)))
        return len(rows)


Counts = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class MinedSpec(MinedView):
    """Base class of the kinds that draw from the sentences of the complete corpus.

    Attributes:
        window: Minimum and maximum cosine of a candidate.
        block: Number of sentences that are scored for each row; 4,096 rows share a block. If it is
            at least the size of the corpus, all pairs are scored, in quadratic time.
    """

    unit: ClassVar[int] = 4096

    window: tuple[float, float] = (-1.0, 1.0)
    block: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "block")
        if not -1 <= self.window[0] <= self.window[1] <= 1:
            raise ValueError(
                f"window must be a range within [-1, 1], not {list(self.window)} (DebCSE: [0.25, 0.75])"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """The window, opened at -1 and 1, because a rounded cosine may lie just outside."""
        low, high = self.window
        if low <= -1:
            low = -np.inf
        if high >= 1:
            high = np.inf
        return low, high

    def prepare(
        self, sentences: SentenceStore, engine: Engine, models: Mapping[str, Backbone]
    ) -> Vectors:
        """Embed the corpus, unless its vectors are in the cache."""
        return open_vectors(sentences, self, self.embedder(models), engine)

    def open(self, *, seed: int = 0, prepared: Vectors | None = None) -> OpenedView:
        """Return the miner; files are mapped when they are read."""
        assert prepared is not None
        return OpenedView(
            build=partial(self._mined, index=prepared, seed=seed), digest=prepared.weights_hash
        )

    def draw(
        self, rows: Sequence[SourceRow], index: Vectors, seed: int
    ) -> tuple[CandidatePools, Counts]:
        """Draw for the rows of one unit; depends only on the corpus, the options and the seed.

        Returns:
            The sentences drawn for each row, up to m, and counts that are recorded as scores, int64
            (a,) each; `candidates` is the size of the pool that they were drawn from.
        """
        raise NotImplementedError

    def random_block(self, rows: Sequence[SourceRow], index: Vectors, seed: int) -> np.ndarray:
        """Return the numbers of random sentences, without copies, that a unit's rows share."""
        keys = index.sentences.keys
        unit = SourceRow(id=rows[0].id // self.unit, text="")
        block_seed = row_seed(seed, f"{self.kind} block", unit)
        return without_copies(random_block(len(keys), self.block, block_seed), keys)

    def _mined(self, rows: Sequence[SourceRow], index: Vectors, seed: int) -> list[list[ViewText]]:
        """Draw for each row."""
        drawn, counts = self.draw(rows, index, seed)
        # Positions are filled from the first.
        row, place = np.nonzero(drawn.valid)
        ids = drawn.ids[row, place]
        counted = []
        for numbers in np.stack(list(counts.values()), axis=1).tolist():
            counted.append(dict(zip(counts, numbers, strict=True)))
        chosen = []
        for text, i in zip(index.sentences.take(ids), ids.tolist(), strict=True):
            chosen.append((text, f"row {i}"))
        return self._drawn_views(
            rows, row, chosen, drawn.cosine[row, place], counted, empty="empty pool"
        )


@dataclass(frozen=True, kw_only=True)
class HardNegatives(MinedSpec):
    """Draw the nearest sentences of the corpus as negatives, also known as hard negative mining.

    The sentences within the window are sorted by similarity; from those with the given ranks, `count`
    are drawn: the nearest, or random ones. Copies of the sentence are never drawn.

    Attributes:
        ranks: First rank and the one after the last; the nearest has rank 0, so [10, 50] skips the
            ten nearest. [0, 0] stands for [0, count].
        pick: "top" for the nearest of the ranks, "random" for random ones.
        search: "exact" for the nearest in `block`; "approximate" for nearly all of the nearest in
            the complete corpus, by an index of clusters. `block` is then without effect.
        positive: A column that is built before, with the positive of each sentence, for
            `max_ratio`.
        max_ratio: Candidates whose cosine exceeds this share of the positive's are skipped as
            likely false negatives, and have no rank (`relative_margin` of sentence-transformers is
            1 minus it; TopK-PercPos of NV-Retriever, Moreira et al., 2024, uses 0.95). A sentence
            without a positive has no limit.

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
    search: Literal["exact", "approximate"] = "exact"
    positive: str = ""
    max_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranks != (0, 0) and not 0 <= self.ranks[0] <= self.ranks[1] - self.count:
            raise ValueError(
                f"ranks {list(self.ranks)} must be a range that holds at least count = {self.count}"
            )
        if bool(self.positive) != (self.max_ratio is not None):
            raise ValueError(
                "max_ratio and positive, the column whose cosine it is a share of, go together"
            )
        if self.max_ratio is not None and not 0 < self.max_ratio <= 1:
            raise ValueError(f"max_ratio must be a share above 0, up to 1, not {self.max_ratio}")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column of the positives."""
        return (self.positive,) if self.positive else ()

    def prepare(
        self, sentences: SentenceStore, engine: Engine, models: Mapping[str, Backbone]
    ) -> Vectors:
        """Embed the corpus, and build the index of an approximate search, unless they are in the cache."""
        vectors = super().prepare(sentences, engine, models)
        if self.search == "approximate":
            build_index(vectors, engine)
        return vectors

    @cached_property
    def _opened(self) -> Embedder:
        return self.embedder()

    def _limits(self, rows: Sequence[SourceRow], anchors: np.ndarray) -> np.ndarray | None:
        """Return the maximum cosine of each row's candidates, float32 (a,).

        `anchors` are the vectors of the rows.
        """
        if self.max_ratio is None:
            return None
        limits = np.full(len(rows), np.inf, dtype=np.float32)
        with_positive = []
        texts = []
        for i, row in enumerate(rows):
            text = row.views[self.positive]
            if text is not None:
                with_positive.append(i)
                texts.append(text)
        positives = unit_rows(self._opened(texts))
        cosine = (anchors[with_positive] * positives).sum(axis=1)
        # The margin is subtracted, so that a negative cosine gets a lower limit, too.
        limits[with_positive] = cosine - np.abs(cosine) * np.float32(1 - self.max_ratio)
        return limits

    def draw(
        self, rows: Sequence[SourceRow], index: Vectors, seed: int
    ) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        ids = np.array([row.id for row in rows])
        first, last = self.ranks
        if last == 0:
            first = 0
            last = self.count
        limits = self._limits(rows, index.take(ids))
        if self.search == "approximate":
            clusters = open_index(index)
            ranked, skipped = search(
                clusters, ids, index, size=last, window=self.bounds, limits=limits
            )
        else:
            candidates = self.random_block(rows, index, seed)
            ranked, skipped = nearest(
                ids,
                candidates,
                index.sentences.keys,
                index.take,
                size=last,
                window=self.bounds,
                limits=limits,
            )
        pools = CandidatePools(ids=ranked.ids[:, first:last], cosine=ranked.cosine[:, first:last])
        # With equal scores the draw is uniform; without noise it takes the nearest in order.
        even = np.zeros(pools.ids.shape)
        noise = even
        if self.pick == "random":
            noise = gumbel_noise(self.row_seeds(seed, rows), pools.ids)
        drawn = pools.at(draw(even, pools.valid, noise, count=self.count, temperature=1.0))
        return drawn, {"candidates": pools.sizes, "skipped": skipped}
