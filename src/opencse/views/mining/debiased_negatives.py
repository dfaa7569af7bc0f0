"""Debiased negatives: a weighted draw from sentences that are neither too near nor too far (DebCSE §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opencse.surface.pools import pool_distance, symbols
from opencse.views.constructor import SourceRow, row_seed
from opencse.views.mining import scores
from opencse.views.mining.mined_spec import Draw, Index, MinedSpec, bounds, check_window
from opencse.views.mining.pools import Pools, in_window, random_block, scoring_memory, without_copies
from opencse.views.mining.scores import Mode

SOUND_TEMPERATURE = 0.1
_CODED = 40_000  # texts that are held in code at a time


@dataclass(frozen=True, kw_only=True)
class DebiasedNegatives(MinedSpec):
    """Draw negatives that look like the sentence and mean something else.

    The pool of a sentence is a random sample of `pool` sentences whose cosine lies in the window, met in a random block
    of the corpus. Negatives are drawn from it without replacement, by `opencse.views.mining.scores`.

    Attributes:
        model: DebCSE uses an unsupervised SimCSE model.
        count: DebCSE draws 2.
        window: Least and greatest cosine of the pool (DebCSE: 0.25 and 0.75).
        weight: λ_n, the share of meaning in the selection score (DebCSE: 0.8).
        mode: "sound", or "faithful" for the paper's literal scores.
        temperature: Of the draw; 0 takes the best. By default 1 for "faithful", as published, else 0.1.
        pool: n, the most candidates of one sentence; the paper does not say.
        block: Sentences that are scored for each sentence; those of 4,096 rows are the same. With a block of the
            corpus' size or more, all pairs are scored.
        edits: What the edit distance counts.
    """

    kind: ClassVar[str] = "debiased_negatives"

    window: tuple[float, float] = (0.25, 0.75)
    weight: float = 0.8
    mode: Mode = "sound"
    temperature: float | None = None
    pool: int = 200
    block: int = 10_000
    edits: Literal["word", "character"] = "word"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_window(self.window)
        check_draw(self.weight, self.temperature)
        if self.pool < 1 or self.block < 1:
            raise ValueError("pool and block must be at least 1")

    def memory(self, rows: int, dimension: int) -> int:
        """See `MinedSpec`."""
        block, a = min(self.block, rows), min(self.unit, rows)
        pool = min(self.pool, block)
        step = a if block <= _CODED else max(1, _CODED // pool)
        drawn = step * pool * 120 + min(block, _CODED) * 3000  # scores of all candidates, and texts with their codes
        return a * pool * 12 + block * 48 + max(scoring_memory(a, dimension, pool), drawn)

    def draw(self, rows: Sequence[SourceRow], index: Index, seed: int) -> Draw:
        """See `MinedSpec`."""
        unit = SourceRow(id=rows[0].id // self.unit, text="")
        keys = index.sentences.keys
        block = random_block(len(index.sentences), self.block, row_seed(seed, f"{self.kind} block", unit))
        block = without_copies(block, keys[block])
        ids = np.array([row.id for row in rows])
        low, high = bounds(self.window)
        pools = in_window(
            index.vectors.take(ids),
            keys[ids],
            block,
            keys[block],
            index.vectors.take,
            size=min(self.pool, len(block)),
            window=(low, high),
        )
        seeds = np.array([row_seed(seed, self.kind, row) for row in rows], dtype=np.uint64)
        places = np.full((len(rows), self.count), -1, dtype=np.int64)
        step = len(rows) if len(block) <= _CODED else max(1, _CODED // pools.ids.shape[1])
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            some = Pools(ids=pools.ids[part], cosine=pools.cosine[part])
            places[part] = self._places(ids[part], some, seeds[part], index)
        drawn = places >= 0
        return Draw(
            ids=np.where(drawn, np.take_along_axis(pools.ids, places, axis=1), -1),
            cosine=np.take_along_axis(pools.cosine, places, axis=1),
            sizes=pools.sizes,
        )

    def _places(self, ids: np.ndarray, pools: Pools, seeds: np.ndarray, index: Index) -> np.ndarray:
        """Which places of its pool are drawn for each row, (a, m)."""
        used, place = np.unique(np.concatenate((ids, pools.ids[pools.there])), return_inverse=True)
        texts = symbols(index.sentences.take(used), unit=self.edits)
        anchors, members = place[: len(ids)], np.full(pools.ids.shape, -1)
        members[pools.there] = place[len(ids) :]
        size = texts.lengths
        score = scores.selection_scores(
            pools.cosine,
            pool_distance(texts, anchors, members),
            np.maximum(size[anchors][:, None], size[members]),
            pools.there,
            weight=self.weight,
            role="negative",
            mode=self.mode,
        )
        return scores.draw(
            score,
            pools.there,
            scores.gumbel(seeds, pools.ids),
            count=self.count,
            temperature=temperature(self.temperature, self.mode),
        )


def temperature(given: float | None, mode: Mode) -> float:
    """Return the temperature of a draw: the given one, or the mode's own."""
    return given if given is not None else 1.0 if mode == "faithful" else SOUND_TEMPERATURE


def check_draw(weight: float, temperature: float | None) -> None:
    """Raise ValueError where the parameters of a draw are impossible."""
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must lie in [0, 1], not {weight} (DebCSE: 0.8)")
    if temperature is not None and not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be at least 0, not {temperature} (as published: 1)")
