"""Debiased negatives and positives: weighted draws by meaning and surface (DebCSE §4.1, §4.2).

All arrays have the shape (a, n): `a` rows with up to n candidates each; `valid` is false for the
padding.

`faithful` follows the paper's equations. Their softmax of raw edit distances puts all mass on one
candidate, their softmax of cosines gives each about 1 / n, and their second softmax, of values
within [0, 1], is almost flat: every candidate of a pool of 200 is drawn with 0.98 to 1.02 times the
probability of a uniform draw. `sound` keeps the linear mixture, but of comparable scores
(standardised within the pool), and sharpens it with a temperature, as the paper's text intends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from opencse.foundation.numbers import check_least, unit_rows
from opencse.text.generated.paraphrases import ChosenCandidate, distinct_candidates
from opencse.text.mined.candidate_pools import CandidatePools, draw, gumbel_noise, in_window
from opencse.text.mined.vectors import Counts, MinedSpec, MinedView, Vectors
from opencse.text.surface import edit_units
from opencse.text.views.registry import (
    OpenedView,
    SourceRow,
    View,
    ViewText,
    bundle_digest,
)

if TYPE_CHECKING:
    from opencse.encoder.embedder import Embedder

# The paper has no temperature, which is 1.
_TEMPERATURE = {"sound": 0.1, "faithful": 1.0}
Mode = Literal["sound", "faithful"]
Role = Literal["negative", "positive"]


@dataclass(frozen=True, kw_only=True)
class _DebiasedDraw(MinedView):
    """Base class of the kinds that draw by meaning and surface.

    Class attributes:
        role: Whether negatives or positives are drawn.

    Attributes:
        weight: λ, the share of meaning in the selection score (DebCSE: 0.8).
        mode: "sound", or "faithful" for the paper's literal scores.
    """

    role: ClassVar[Role] = "negative"

    weight: float = 0.8
    mode: Mode = "sound"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.weight <= 1:
            raise ValueError(f"weight must lie in [0, 1], not {self.weight} (DebCSE: 0.8)")

    def places(
        self,
        texts: Sequence[str],
        anchors: np.ndarray,
        members: np.ndarray,
        cosine: np.ndarray,
        noise: np.ndarray,
    ) -> np.ndarray:
        """Return the positions drawn from each row's pool, int64 (a, m); -1 if it is exhausted.

        Args:
            texts: All texts, from `opencse.text.surface.edit_units`.
            anchors: Index of each row's text, (a,).
            members: Indices of the candidates' texts; negative for the padding.
            cosine: Cosine similarity of row and candidate.
            noise: Standard Gumbel noise.
        """
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        valid = members >= 0
        size = np.array([len(text) for text in texts])
        longer = np.maximum(size[anchors][:, None], size[members])
        distance = np.zeros(members.shape, dtype=np.int32)
        for i, anchor in enumerate(anchors.tolist()):
            exists = valid[i]
            pool = [texts[member] for member in members[i][exists].tolist()]
            to_anchor = cdist(
                [texts[anchor]], pool, scorer=Levenshtein.distance, dtype=np.int32, workers=1
            )
            distance[i][exists] = to_anchor[0]
        score = selection_scores(
            cosine, distance, longer, valid, weight=self.weight, role=self.role, mode=self.mode
        )
        temperature = _TEMPERATURE[self.mode]
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
    """Return each candidate's score before the last softmax: P~ of DebCSE, Eq. 3 and 5.

    With S_sur and S_sem the surface and semantic similarity, negatives get (1 - w) S_sur + w (1 -
    S_sem) and positives (1 - w) (1 - S_sur) + w S_sem. `faithful`: S_sur = 1 - softmax(distance),
    S_sem = softmax(cosine), over the pool (eq. 1, 2). `sound`: S_sur and S_sem are the z-scores of
    1 - distance / longer and of the cosine within the pool, and "1 - S" is read as "-S".

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
        surface = 1 - _softmax(distance, valid)
        meaning = _softmax(cosine, valid)
        one = 1.0
    else:
        ratio = np.divide(distance, longer, out=np.zeros(distance.shape), where=longer > 0)
        surface = _standardised(1 - ratio, valid)
        meaning = _standardised(cosine, valid)
        # A z-score has no upper end to subtract from: its complement is its negative.
        one = 0.0
    if role == "negative":
        score = (1 - weight) * surface + weight * (one - meaning)
    else:
        score = (1 - weight) * (one - surface) + weight * meaning
    return np.where(valid, score, 0.0)


def _softmax(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the softmax over the valid candidates, 0 elsewhere."""
    from scipy.special import softmax

    with np.errstate(invalid="ignore"):  # an empty pool gives 0 / 0
        return np.nan_to_num(softmax(np.where(valid, values, -np.inf), axis=1))


def _standardised(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return z-scores within each pool; 0 if all values are equal."""
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    centred = np.where(valid, values, 0.0).astype(np.float64)
    centred = np.where(valid, centred - centred.sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-9)


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(_DebiasedDraw, MinedSpec):
    """Draw negatives with a similar surface form and a different meaning.

    The candidate pool of a sentence is a random sample of the sentences whose cosine lies in the
    window, from a random block of the corpus. Negatives are drawn from it without replacement, by
    `opencse.text.mined.debiased`. Source: Miao et al., DebCSE (CIKM 2023), §4.1.

    Attributes:
        model: The encoder; DebCSE uses an unsupervised SimCSE model.
        count: Number of negatives per row (DebCSE: 2).
        window: Minimum and maximum cosine of a candidate, as in DebCSE.
        pool: n, the maximum size of a candidate pool; the paper does not give it.

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

    kind = "debiased_negatives"

    window: tuple[float, float] = (0.25, 0.75)
    pool: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "pool")

    def draw(
        self, rows: Sequence[SourceRow], index: Vectors, seed: int
    ) -> tuple[CandidatePools, Counts]:
        """See `MinedSpec`."""
        ids = np.array([row.id for row in rows])
        block = self.random_block(rows, index, seed)
        size = min(self.pool, len(block))
        pools = in_window(
            ids, block, index.sentences.keys, index.take, size=size, window=self.bounds
        )

        # Each text is read once, however many pools it is in.
        candidate_ids = pools.ids[pools.valid]
        used, place = np.unique(np.concatenate((ids, candidate_ids)), return_inverse=True)
        anchors = place[: len(ids)]
        members = np.full(pools.ids.shape, -1)
        members[pools.valid] = place[len(ids) :]
        texts = edit_units(index.sentences.take(used))

        noise = gumbel_noise(self.row_seeds(seed, rows), pools.ids)
        places = self.places(texts, anchors, members, pools.cosine, noise)
        return pools.at(places), {"candidates": pools.sizes}


@dataclass(frozen=True, kw_only=True)
class DebiasedPositives(_DebiasedDraw):
    r"""Draw positives with the same meaning and a different surface form.

    Source: Miao et al., DebCSE (CIKM 2023), §4.2.

    Attributes:
        model: The encoder, as in `DebiasedNegatives`.
        source: Source of the candidates: a `back_translation` (DebCSE: with noise and several
            `variants`) or a `candidate_table`; its window and pick have no effect.

    Example:
        [build.positive]
        kind = "debiased_positives"
        model = "backbone"
        source = { kind = "candidate_table", path = "paraphrases.csv" }

    Example:
        >>> from pathlib import Path
        >>> from opencse.text.views.registry import CandidateTable
        >>> _ = Path("rain.csv").write_text("text,candidate\nIt rains.,There is rain.\n")
        >>> source = CandidateTable(path="rain.csv")
        >>> spec = DebiasedPositives(model="mini-mlm", pooling="mean", precision="fp32", count=1, source=source)
        >>> spec.preview("It rains.")
        [['There is rain.']]
    """

    kind = "debiased_positives"
    role = "positive"

    source: View

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.source, ChosenCandidate):
            raise ValueError(
                f"source must be a back_translation or a candidate_table, not a {self.source.kind}"
            )

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load the encoder and the source."""
        from opencse.encoder.backbone import weights_hash

        assert isinstance(self.source, ChosenCandidate)
        embedder = self.embedder()
        source = self.source.candidates(seed)
        digest = bundle_digest(weights_hash(embedder.model), source.digest)
        build = partial(self._drawn, embedder=embedder, source=source, seed=seed)
        return OpenedView(build=build, digest=digest)

    def _drawn(
        self, rows: Sequence[SourceRow], embedder: Embedder, source: OpenedView, seed: int
    ) -> list[list[ViewText]]:
        """Draw for each row."""
        pools = []
        for row, candidates in zip(rows, source(rows), strict=True):
            pools.append(distinct_candidates(row.text, candidates))

        # The texts of the rows come first, then those of all pools.
        texts = [row.text for row in rows]
        for pool in pools:
            texts += [text for text, _ in pool]
        sizes = np.array([len(pool) for pool in pools], dtype=np.int64)
        n = max(1, sizes.max(initial=0))
        valid = np.arange(n) < sizes[:, None]
        members = np.full(valid.shape, -1, dtype=np.int64)
        members[valid] = np.arange(len(rows), len(texts))

        vectors = unit_rows(embedder.encode(texts))
        row_of_member = np.nonzero(valid)[0]
        cosine = np.zeros(valid.shape, dtype=np.float32)
        cosine[valid] = (vectors[row_of_member] * vectors[members[valid]]).sum(axis=1)

        numbers = np.tile(np.arange(n), (len(rows), 1))
        noise = gumbel_noise(self.row_seeds(seed, rows), numbers)
        places = self.places(edit_units(texts), np.arange(len(rows)), members, cosine, noise)
        owner, rank = np.nonzero(places >= 0)
        place = places[owner, rank]
        chosen = [pools[i][k] for i, k in zip(owner.tolist(), place.tolist(), strict=True)]
        counts = [{"candidates": len(pool)} for pool in pools]
        return self._drawn_views(
            rows, owner, chosen, cosine[owner, place], counts, empty="no candidate"
        )
