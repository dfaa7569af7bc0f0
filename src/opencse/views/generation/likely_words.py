"""Insertions and substitutions that a masked language model finds likely (OssCSE §3.2): probes of small changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opencse.views.constructor import BuiltView, ConstructorSpec, SourceRow, row_random, with_error_rate
from opencse.views.edits import Edit, apply_edits

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class _Probe(ConstructorSpec):
    """What both probes share.

    Attributes:
        model: A masked language model: local folder or hub id.
        share: Least and greatest share of the words that is touched; at least one word is.
        batch_size: Sentences in one forward pass.
        device: "cpu", "cuda", ...; "" for an accelerator where there is one.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    model: str
    share: tuple[float, float] = (0.05, 0.1)
    batch_size: int = 64
    device: str = ""

    def __post_init__(self) -> None:
        if len(self.share) != 2 or not 0 < self.share[0] <= self.share[1] <= 1:
            raise ValueError(f"share must be a range within (0, 1], not {list(self.share)} (OssCSE: [0.05, 0.1])")

    def open(self, *, seed: int = 0, workers: int = 1) -> Prober:
        """Load the masked language model."""
        return Prober(self, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Insertion(_Probe):
    """Insert likely words between the words of the sentence."""

    kind: ClassVar[str] = "insertion"


@dataclass(frozen=True, kw_only=True)
class WordSubstitution(_Probe):
    """Replace words by other likely ones."""

    kind: ClassVar[str] = "word_substitution"


class Prober:
    """An opened probe: masks stand at the chosen places, and the likeliest other word takes each."""

    def __init__(self, spec: _Probe, *, seed: int = 0) -> None:
        from opencse.views.generation.masked_lm import MaskedLM

        self._spec, self._seed = spec, seed
        self._lm = MaskedLM(spec.model, device=spec.device, batch_size=spec.batch_size)
        self.digest = self._lm.digest

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Touch each row's text."""
        import numpy as np

        insert = isinstance(self._spec, Insertion)
        encoded = self._lm.encode([row.text for row in rows], room=self._spec.share[1])
        places = [self._places(row, encoded, i) for i, row in enumerate(rows)]
        made: list[tuple[str | None, str]] = [(None, "too short")] * len(rows)
        live = [i for i, few in enumerate(places) if few]
        shown = {i: self._shown(encoded["input_ids"][i], places[i], insert) for i in live}
        where = [np.array(shown[i][1]) for i in live]
        for k, scores in self._lm.scores([shown[i][0] for i in live], where):
            i = live[k]
            ids, offsets = encoded["input_ids"][i], encoded["offset_mapping"][i]
            edits: list[Edit] = []
            last = None
            for place, found in zip(places[i], scores, strict=True):
                last = word = self._likeliest(found, ids[place], last)
                start, end = offsets[place]
                edits.append((start, start, word + " ") if insert else (start, end, word))
            made[i] = (apply_edits(rows[i].text, edits), f"{len(edits)} {'inserted' if insert else 'replaced'}")
        return with_error_rate(rows, made)

    def _places(self, row: SourceRow, encoded: Any, index: int) -> list[int]:
        """Choose whole words (single pieces with a letter, so that a replacement is a word as well)."""
        words, offsets = encoded.word_ids(index), encoded["offset_mapping"][index]
        single = [
            k
            for k, word in enumerate(words)
            if word is not None
            and words.count(word) == 1
            and any(c.isalpha() for c in row.text[slice(*offsets[k])])
            and (offsets[k][0] == 0 or row.text[offsets[k][0] - 1].isspace())
        ]
        count = len(row.text.split())
        rng = row_random(self._seed, self._spec.kind, row)
        wanted = max(1, math.floor(count * rng.uniform(*self._spec.share)))
        room = self._lm.max_length - len(words)
        return sorted(rng.sample(single, max(0, min(wanted, len(single), room))))

    def _shown(self, ids: Sequence[int], places: Sequence[int], insert: bool) -> tuple[list[int], list[int]]:
        """Return the ids with masks, and where the masks are."""
        mask = self._lm.tokenizer.mask_token_id
        out: list[int] = []
        at: list[int] = []
        for k, token in enumerate(ids):
            if k in places:
                at.append(len(out))
                out.append(mask)
                if not insert:
                    continue
            out.append(token)
        return out, at

    def _likeliest(self, scores: np.ndarray, original: int, last: str | None) -> str:
        """Return the likeliest whole alphabetic word that differs from what stands there."""
        tokenizer = self._lm.tokenizer
        for index in _best(scores, 50):
            piece = tokenizer.convert_ids_to_tokens(index)
            word = tokenizer.convert_tokens_to_string([piece]).strip()
            if index != original and not piece.startswith("##") and word.isalpha() and word != last:
                return word
        return tokenizer.convert_tokens_to_string([tokenizer.convert_ids_to_tokens(original)]).strip()


def _best(scores: np.ndarray, count: int) -> list[int]:
    """Return where the highest scores are, the highest first."""
    import numpy as np

    best = np.argpartition(-scores, min(count, len(scores)) - 1)[:count]
    return sorted(best.tolist(), key=lambda i: (-scores[i], i))
