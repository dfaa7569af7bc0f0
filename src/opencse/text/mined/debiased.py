"""Debiased negatives and positives: weighted draws by meaning and surface (DebCSE §4.1, §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from opencse.foundation.numbers import check_least, unit_rows
from opencse.text.generated.back_translation import BackTranslation
from opencse.text.generated.candidate_table import Candidate, CandidateSource, CandidateTable, distinct_candidates
from opencse.text.mined.candidate_pools import CandidatePools, in_window
from opencse.text.mined.selection import DebiasedDraw, Role, gumbel_noise
from opencse.text.mined.vectors import CorpusIndex, Counts, MinedSpec, open_bounds, surface_scores
from opencse.text.surface import edit_units
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, bundle_digest

_ENCODED = 40_000  # texts whose words are held in memory at a time


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(DebiasedDraw, MinedSpec):
    """Draw negatives with a similar surface form and a different meaning.

    The candidate pool of a sentence is a random sample of the sentences whose cosine lies in the window, from a random
    block of the corpus. Negatives are drawn from it without replacement, by `opencse.text.mined.selection`. Source:
    Miao et al., DebCSE (CIKM 2023), §4.1.

    Attributes:
        model: The encoder; DebCSE uses an unsupervised SimCSE model.
        count: Number of negatives per row (DebCSE: 2).
        window: Minimum and maximum cosine of a candidate (DebCSE: 0.25 and 0.75).
        pool: n, the maximum size of a candidate pool; the paper does not give it.
        block: Number of sentences that are scored for each row; 4,096 rows share a block. If it is at least the size
            of the corpus, all pairs are scored.

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
    pool: int = 200
    block: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "pool", "block")

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        block = self.random_block(self.block, rows, index, seed)
        ids, size = np.array([row.id for row in rows]), min(self.pool, len(block))
        pools = in_window(ids, block, index.searched, size=size, window=open_bounds(self.window))
        seeds = self.row_seeds(seed, rows)
        places = np.empty((len(rows), self.count), dtype=np.int64)
        step = len(rows) if len(block) <= _ENCODED else max(1, _ENCODED // size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            part_pools = CandidatePools(ids=pools.ids[part], cosine=pools.cosine[part])
            places[part] = self._places(ids[part], part_pools, seeds[part], index)
        return pools.at(places), {"candidates": pools.sizes}

    def _places(self, ids: np.ndarray, pools: CandidatePools, seeds: np.ndarray, index: CorpusIndex) -> np.ndarray:
        """Return the positions that are drawn from the pool of each row, (a, m)."""
        used, place = np.unique(np.concatenate((ids, pools.ids[pools.valid])), return_inverse=True)
        texts = edit_units(index.sentences.take(used))
        anchors, members = place[: len(ids)], np.full(pools.ids.shape, -1)
        members[pools.valid] = place[len(ids) :]
        return self.places(texts, anchors, members, pools.cosine, gumbel_noise(seeds, pools.ids))


@dataclass(frozen=True, kw_only=True)
class DebiasedPositives(DebiasedDraw):
    r"""Draw positives with the same meaning and a different surface form.

    DebCSE has no window of cosines. Source: Miao et al., DebCSE (CIKM 2023), §4.2.

    Attributes:
        model: The encoder, as in `DebiasedNegatives`.
        source: Source of the candidates: a `back_translation` (DebCSE: with noise and several `variants`) or a
            `candidate_table`; its window and pick have no effect.

    Example:
        [build.positive]
        kind = "debiased_positives"
        model = "backbone"
        source = { kind = "candidate_table", path = "paraphrases.csv" }

    Example:
        >>> from pathlib import Path
        >>> _ = Path("rain.csv").write_text("text,candidate\nIt rains.,There is rain.\n")
        >>> source = CandidateTable(path="rain.csv")
        >>> spec = DebiasedPositives(model="mini-mlm", pooling="mean", precision="fp32", count=1, source=source)
        >>> spec.preview("It rains.")
        [['There is rain.']]
    """

    kind: ClassVar[str] = "debiased_positives"
    role: ClassVar[Role] = "positive"

    source: ConstructorSpec

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.source, BackTranslation | CandidateTable):
            raise ValueError(f"source must be a back_translation or a candidate_table, not a {self.source.kind}")

    def open(self, *, seed: int = 0, prepared: Any = None) -> PositiveDrawer:
        """Load the encoder and the source."""
        return PositiveDrawer(self, seed)


class PositiveDrawer:
    """An opened `DebiasedPositives`."""

    def __init__(self, spec: DebiasedPositives, seed: int) -> None:
        from opencse.encoder.weights_hash import weights_hash

        self._spec, self._seed = spec, seed
        self._embedder = spec.embedder()
        self._source = cast(CandidateSource, spec.source.open(seed=seed))
        self.digest = bundle_digest(weights_hash(self._embedder.model), self._source.digest)

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Draw for each row."""
        pools = self._source.candidates(rows)
        pools = [distinct_candidates(row.text, pool) for row, pool in zip(rows, pools, strict=True)]
        places, cosine, valid = self._drawn(rows, pools)
        sizes = valid.sum(axis=1).tolist()
        out = []
        for pool, size in zip(pools, sizes, strict=True):
            why = "no candidate" if not pool else "pool exhausted" if size else "none in window"
            out.append([BuiltView(text=None, rule=why, scores={"candidates": size})] * self._spec.count)
        row, k = np.nonzero(places >= 0)
        chosen = [pools[i][place] for i, place in zip(row.tolist(), places[row, k].tolist(), strict=True)]
        values = surface_scores(
            [rows[i].text for i in row.tolist()], [one.text for one in chosen], cosine[row, places[row, k]]
        )
        for i, rank, one, scored in zip(row.tolist(), k.tolist(), chosen, values, strict=True):
            out[i][rank] = BuiltView(
                text=one.text, rule=one.label or "chosen", scores={**scored, "candidates": sizes[i]}
            )
        return out

    def _drawn(
        self, rows: Sequence[SourceRow], pools: Sequence[Sequence[Candidate]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the drawn positions, (a, m), the cosines, (a, n), and the mask of candidates in the window, (a, n)."""
        spec = self._spec
        texts = [row.text for row in rows] + [one.text for pool in pools for one in pool]
        sizes = np.array([len(pool) for pool in pools], dtype=np.int64)
        n = max(1, sizes.max(initial=0))
        valid = np.arange(n) < sizes[:, None]
        members = np.full(valid.shape, -1, dtype=np.int64)
        members[valid] = np.arange(len(rows), len(texts))
        vectors = unit_rows(self._embedder.encode(texts))
        cosine = np.zeros(valid.shape, dtype=np.float32)
        cosine[valid] = (vectors[np.nonzero(valid)[0]] * vectors[members[valid]]).sum(axis=1)
        low, high = open_bounds(spec.window)
        valid &= (cosine >= low) & (cosine <= high)
        members = np.where(valid, members, -1)
        noise = gumbel_noise(spec.row_seeds(self._seed, rows), np.tile(np.arange(n), (len(rows), 1)))
        places = spec.places(edit_units(texts), np.arange(len(rows)), members, cosine, noise)
        return places, cosine, valid
