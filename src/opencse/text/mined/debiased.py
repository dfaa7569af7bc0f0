"""Debiased negatives and positives: weighted draws by meaning and surface (DebCSE §4.1, §4.2).

All arrays have the shape (a, n): `a` rows with up to n candidates each; `valid` is false for the padding.

`faithful` follows the paper's equations. Their softmax of raw edit distances puts all mass on one candidate, their
softmax of cosines gives each about 1 / n, and their second softmax, of values within [0, 1], is almost flat: every
candidate of a pool of 200 is drawn with 0.98 to 1.02 times the probability of a uniform draw. `sound` keeps the linear
mixture, but of comparable scores (standardised within the pool), and sharpens it with a temperature, as the paper's
text intends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np

from opencse.foundation.numbers import check_least, unit_rows
from opencse.text.generated.paraphrases import (
    BackTranslation,
    Candidate,
    CandidateSource,
    CandidateTable,
    distinct_candidates,
)
from opencse.text.mined.candidate_pools import CandidatePools, in_window
from opencse.text.mined.vectors import (
    CorpusIndex,
    Counts,
    EmbeddingSpec,
    MinedSpec,
    check_cosine_window,
    open_bounds,
    surface_scores,
)
from opencse.text.surface import edit_units, pool_distance
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, bundle_digest

SOUND_TEMPERATURE = 0.1
Mode = Literal["sound", "faithful"]
Role = Literal["negative", "positive"]


@dataclass(frozen=True, kw_only=True)
class DebiasedDraw(EmbeddingSpec):
    """Base class of the kinds that draw by meaning and surface.

    Class attributes:
        role: Whether negatives or positives are drawn.

    Attributes:
        weight: λ, the share of meaning in the selection score (DebCSE: 0.8).
        mode: "sound", or "faithful" for the paper's literal scores.
        temperature: Temperature of the draw; 0 takes the best. By default 1 for "faithful", as published, else 0.1.
    """

    role: ClassVar[Role] = "negative"

    weight: float = 0.8
    mode: Mode = "sound"
    temperature: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.weight <= 1:
            raise ValueError(f"weight must lie in [0, 1], not {self.weight} (DebCSE: 0.8)")
        if self.temperature is not None and not 0 <= self.temperature < np.inf:
            raise ValueError(f"temperature must be at least 0, not {self.temperature} (as published: 1)")

    def places(
        self, texts: Sequence[str], anchors: np.ndarray, members: np.ndarray, cosine: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return the positions that are drawn from the pool of each row, int64 (a, m); -1 if the pool is exhausted.

        Args:
            texts: All texts, from `opencse.text.surface.edit_units`.
            anchors: Index of each row's text, (a,).
            members: Indices of the candidates' texts; negative for the padding.
            cosine: Cosine similarity of row and candidate.
            noise: Standard Gumbel noise.
        """
        valid, size = members >= 0, np.array([len(text) for text in texts])
        longer = np.maximum(size[anchors][:, None], size[members])
        distance = pool_distance(texts, anchors, members)
        score = selection_scores(cosine, distance, longer, valid, weight=self.weight, role=self.role, mode=self.mode)
        temperature = self.temperature
        if temperature is None:
            temperature = 1.0 if self.mode == "faithful" else SOUND_TEMPERATURE
        return draw(score, valid, noise, count=self.count, temperature=temperature)


def selection_scores(
    cosine: np.ndarray,
    distance: np.ndarray,
    longer: np.ndarray,
    valid: np.ndarray,
    *,
    weight: float,
    role: Role,
    mode: Mode,
) -> np.ndarray:
    """Return the selection score of each candidate before the last softmax: P~ of DebCSE, Eq. 3 and 5.

    With S_sur and S_sem the surface and semantic similarity, negatives get (1 - w) S_sur + w (1 - S_sem) and positives
    (1 - w) (1 - S_sur) + w S_sem. `faithful`: S_sur = 1 - softmax(distance), S_sem = softmax(cosine), over the pool
    (eq. 1, 2). `sound`: S_sur and S_sem are the z-scores of 1 - distance / longer and of the cosine within the pool,
    and "1 - S" is read as "-S".

    Args:
        cosine: Cosine similarity of row and candidate.
        distance: Edit distance of row and candidate.
        longer: Length of the longer text, in the unit of the distance.
        valid: Mask of the candidates that exist.
        weight: w, the share of meaning: the paper's λ_n and λ_p.
        role: Whether negatives or positives are drawn.
        mode: "sound" or "faithful".

    Returns:
        float64 (a, n), padded with 0. If all members of a pool are alike, their scores are equal.
    """
    if mode == "faithful":
        surface, meaning = 1 - _softmax(distance, valid), _softmax(cosine, valid)
        one = 1.0
    else:
        ratio = np.divide(distance, longer, out=np.zeros(distance.shape), where=longer > 0)
        surface, meaning = _standardised(1 - ratio, valid), _standardised(cosine, valid)
        one = 0.0
    if role == "negative":
        score = (1 - weight) * surface + weight * (one - meaning)
    else:
        score = (1 - weight) * (one - surface) + weight * meaning
    return np.where(valid, score, 0.0)


def draw(scores: np.ndarray, valid: np.ndarray, noise: np.ndarray, *, count: int, temperature: float) -> np.ndarray:
    """Draw candidates without replacement, with probability ∝ exp(score / temperature) (Gumbel top-k).

    The `count` highest values of score + temperature x noise are such a draw; temperature 0 takes the highest scores,
    and the first of equal ones.

    Args:
        scores: Selection scores.
        valid: Mask of the candidates that exist.
        noise: Standard Gumbel noise.
        count: m, the number of candidates to draw.
        temperature: Temperature; 0 for the arg-max.

    Returns:
        int64 (a, count): positions in the pool in the order of the draw; -1 if the pool is exhausted.
    """
    rows, n = scores.shape
    key = scores + temperature * noise if temperature else scores.copy()
    key[~valid] = -np.inf
    out = np.full((rows, count), -1, dtype=np.int64)
    for k in range(min(count, n)):
        best = key.argmax(axis=1)
        drawn = np.flatnonzero(key[np.arange(rows), best] > -np.inf)
        out[drawn, k] = best[drawn]
        key[drawn, best[drawn]] = -np.inf
    return out


def gumbel_noise(row_seeds: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return standard Gumbel noise that depends only on a row's seed and a candidate's number.

    Args:
        row_seeds: Well-mixed seeds of the rows (`opencse.text.views.constructor.row_seed`), uint64 (a,).
        candidates: Numbers of the candidates, int64 (a, n).

    Returns:
        float64 (a, n), finite.
    """
    bits = row_seeds[:, None] + (candidates.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # within (0, 1)
    return -np.log(-np.log(uniform))


def _softmax(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the softmax over the valid candidates, 0 elsewhere; it does not overflow for large distances."""
    shifted = np.where(valid, values, -np.inf).astype(np.float64)
    with np.errstate(invalid="ignore"):
        powers = np.exp(shifted - shifted.max(axis=1, keepdims=True, initial=-np.inf))
    powers = np.where(valid, powers, 0.0)
    return powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)


def _standardised(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return z-scores within each pool; 0 if all values are equal."""
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    centred = np.where(valid, values, 0.0).astype(np.float64)
    centred = np.where(valid, centred - centred.sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-9)


_ENCODED = 40_000  # texts whose words are held in memory at a time


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(DebiasedDraw, MinedSpec):
    """Draw negatives with a similar surface form and a different meaning.

    The candidate pool of a sentence is a random sample of the sentences whose cosine lies in the window, from a random
    block of the corpus. Negatives are drawn from it without replacement, by `opencse.text.mined.debiased`. Source:
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
        check_cosine_window(self.window)
        check_least(self, 1, "pool", "block")

    def draw(self, rows: Sequence[SourceRow], index: CorpusIndex, seed: int) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        block = self.random_block(self.block, rows, index, seed)
        ids, size = np.array([row.id for row in rows]), min(self.pool, len(block))
        keys, take, window = index.sentences.keys, index.vectors.take, open_bounds(self.window)
        pools = in_window(ids, block, keys, take, size=size, window=window)
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

    Source: Miao et al., DebCSE (CIKM 2023), §4.2.

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
        from opencse.encoder.backbone import weights_hash

        self._spec, self._seed = spec, seed
        self._embedder = spec.embedder()
        self._source = cast(CandidateSource, spec.source.open(seed=seed))
        self.digest = bundle_digest(weights_hash(self._embedder.model), self._source.digest)

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Draw for each row."""
        pools = self._source.candidates(rows)
        pools = [distinct_candidates(row.text, pool) for row, pool in zip(rows, pools, strict=True)]
        places, cosine = self._drawn(rows, pools)
        out = []
        for pool in pools:
            why = "pool exhausted" if pool else "no candidate"
            out.append([BuiltView(text=None, rule=why, scores={"candidates": len(pool)})] * self._spec.count)
        row, k = np.nonzero(places >= 0)
        chosen = [pools[i][place] for i, place in zip(row.tolist(), places[row, k].tolist(), strict=True)]
        values = surface_scores(
            [rows[i].text for i in row.tolist()], [one.text for one in chosen], cosine[row, places[row, k]]
        )
        for i, rank, one, scored in zip(row.tolist(), k.tolist(), chosen, values, strict=True):
            scores = {**scored, "candidates": len(pools[i])}
            out[i][rank] = BuiltView(text=one.text, rule=one.label or "chosen", scores=scores)
        return out

    def _drawn(self, rows: Sequence[SourceRow], pools: Sequence[Sequence[Candidate]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the drawn positions, (a, m), and the cosines, (a, n)."""
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
        noise = gumbel_noise(spec.row_seeds(self._seed, rows), np.tile(np.arange(n), (len(rows), 1)))
        places = spec.places(edit_units(texts), np.arange(len(rows)), members, cosine, noise)
        return places, cosine
