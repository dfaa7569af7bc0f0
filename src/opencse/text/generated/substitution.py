"""Syntactically aligned negatives (SAN §3.1): words are masked by their part of speech and predicted anew."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from opencse.text.surface import lexical_overlap
from opencse.text.views.constructor import (
    BuiltView,
    ConstructorSpec,
    SourceRow,
    bundle_digest,
    row_seed,
    with_error_rate,
)

SAN_SCORES: dict[str, float] = {
    "NOUN": 9, "VERB": 9, "ADJ": 8, "PROPN": 8, "ADV": 7, "PRON": 7, "CCONJ": 6, "DET": 6, "ADP": 5, "CONJ": 5,
    "SCONJ": 5, "AUX": 4, "NUM": 4, "PART": 3, "INTJ": 2, "PUNCT": 1, "SYM": 1, "X": 1,
}  # fmt: skip
"""Importance of each part of speech for the meaning (SAN Table 2)."""


@dataclass(frozen=True, kw_only=True)
class Substitution(ConstructorSpec):
    """Mask words with a probability that depends on their part of speech, predict them, and repeat.

    The masking is as published; `drop_unchanged` is our addition. The authors use `short_filter` and a `fallback` for
    RankCSE and RLRD only (Table 6). Source: SAN, §3.1.

    Attributes:
        model: A masked language model: local folder or hub id.
        iterations: Number of mask-and-predict cycles.
        divisor: A token is masked with the probability of its tag's score divided by this.
        tag_scores: Score of each tag (SAN Table 2).
        tagging: "static": one tag per vocabulary entry; "dynamic": the tags of the parsed sentence.
        pieces: Score of pieces that continue a word: that of the tag X ("x", as published), or that of their word's
            tag ("inherit").
        positions: Positions that take the prediction: "all" as published, or only the "masked" ones.
        decode: "argmax" as published, or "sample".
        fallback: Column whose text replaces a rejected output ("negation"); "" for null.
        short_filter: Reject outputs of at most 50 characters in which punctuation makes up 30 % or more of punctuation
            and spaces (SAN's published filter).
        drop_unchanged: Reject outputs with the same words as the source.
        max_characters: Sentences are cut to this length first (300 as published).
        syntax: The pipeline that tags.
        precision: "fp32", "bf16", or "auto": whichever multiplies faster on this machine. In bf16, the order of
            words whose scores differ by less than 1 % may change.

    Example:
        [build.negation]
        kind = "negation"

        [build.negative]
        kind = "substitution"
        model = "mini-mlm"
        fallback = "negation"

        >>> spec = Substitution(model="mini-mlm", precision="fp32", positions="masked")
        >>> spec.preview("The bakery sells bread in our street.")
        ['the wey we know of his life.']
    """

    kind: ClassVar[str] = "substitution"
    scores: ClassVar[Mapping[str, str]] = {"overlap": "float", "mer": "float"}

    model: str
    iterations: int = 4
    divisor: float = 20.0
    tag_scores: dict[str, float] = field(default_factory=lambda: dict(SAN_SCORES))
    tagging: Literal["static", "dynamic"] = "static"
    pieces: Literal["x", "inherit"] = "x"
    positions: Literal["all", "masked"] = "all"
    decode: Literal["argmax", "sample"] = "argmax"
    fallback: str = "negation"
    short_filter: bool = True
    drop_unchanged: bool = True
    max_characters: int = 300
    syntax: str = "syntax"
    precision: Literal["auto", "fp32", "bf16"] = "auto"

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.divisor < max(self.tag_scores.values(), default=0):
            raise ValueError("iterations must be at least 1 and divisor no smaller than any score (SAN: 4 and 20)")
        if self.max_characters < 1:
            raise ValueError("max_characters must be positive")

    @property
    def needs(self) -> tuple[str, ...]:
        """The fallback column."""
        return (self.fallback,) if self.fallback else ()

    def open(self, *, seed: int = 0, prepared: Any = None) -> Substituter:
        """Load the masked language model and the tags."""
        return Substituter(self, seed=seed)


class Substituter:
    """An opened `Substitution`."""

    def __init__(self, spec: Substitution, *, seed: int = 0) -> None:
        from opencse.text.generated.likely_words import WordPredictor
        from opencse.text.syntax import load_parser
        from opencse.text.syntax.vocabulary_tags import static_lexicon

        self.spec, self._seed = spec, seed
        self._predictor = WordPredictor(spec.model, precision=spec.precision)
        self._parser = load_parser(spec.syntax)
        self._of_tag = {tag: score / spec.divisor for tag, score in spec.tag_scores.items()}
        self._of_x = self._of_tag.get("X", 0.0)
        tags = static_lexicon(self._predictor.tokenizer, self._parser)
        self._of_id = np.array([self._of_tag.get(tag, self._of_x) if tag else 0.0 for tag in tags])
        self.digest = bundle_digest(self._predictor.digest, self._parser.digest)

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Substitute words in each row's text."""
        spec = self.spec
        sources = [row.text.strip()[: spec.max_characters] for row in rows]
        sources = [f"{text}." if text and text[-1] not in string.punctuation else text for text in sources]
        texts = list(sources)
        rngs = [np.random.Generator(np.random.Philox(row_seed(self._seed, spec.kind, row))) for row in rows]
        live = [i for i, text in enumerate(texts) if text.strip()]
        for _ in range(spec.iterations):
            for i, text in zip(live, self.cycle([texts[i] for i in live], [rngs[i] for i in live]), strict=True):
                texts[i] = text
        unchanged = lexical_overlap(sources, texts) == 1.0
        results: list[tuple[str | None, str]] = []
        for row, text, same in zip(rows, texts, unchanged.tolist(), strict=True):
            if spec.short_filter and not passes_filter(text):
                results.append(_fallback(row, spec.fallback, "rejected"))
            elif spec.drop_unchanged and same:
                results.append(_fallback(row, spec.fallback, "unchanged"))
            else:
                results.append((text, "substituted"))
        views = with_error_rate(rows, results)
        overlap = lexical_overlap([row.text for row in rows], [view.text or "" for view in views]).tolist()
        return [
            replace(view, scores={**view.scores, "overlap": share if view.text else None})
            for view, share in zip(views, overlap, strict=True)
        ]

    def cycle(self, texts: Sequence[str], rngs: Sequence[np.random.Generator]) -> list[str]:
        """Mask and predict n texts once, each by the generator of its row."""
        encoded, tokenizer = self._predictor.encode(texts), self._predictor.tokenizer
        ids = encoded["input_ids"]
        probability = self.mask_probabilities(texts, encoded)
        masked = [rng.random(len(row)) < p for row, p, rng in zip(ids, probability, rngs, strict=True)]
        predicted = self._predict(ids, masked, rngs)
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": True}
        return [tokenizer.decode(row, **options).strip() for row in predicted]

    def mask_probabilities(self, texts: Sequence[str], encoded: Any) -> list[np.ndarray]:
        """Return the probability with which each token is masked; 0 for special tokens."""
        special = self._predictor.special
        dynamic = list(self._parser.parse(texts)) if self.spec.tagging == "dynamic" else None
        out = []
        for i, ids in enumerate(encoded["input_ids"]):
            ids = np.asarray(ids)
            words = encoded.word_ids(i)
            first = np.array(
                [k == 0 or word is None or word != words[k - 1] for k, word in enumerate(words)], dtype=bool
            )
            if dynamic is None:
                p = self._of_id[ids].copy()
            else:
                p = self._of_offsets(encoded["offset_mapping"][i], dynamic[i])
            if self.spec.pieces == "inherit":
                p = p[np.maximum.accumulate(np.where(first, np.arange(len(ids)), 0))]
            else:
                p = np.where(first, p, self._of_x)
            out.append(np.where(np.isin(ids, special), 0.0, p))
        return out

    def _of_offsets(self, offsets: Sequence[tuple[int, int]], tokens: Sequence[Any]) -> np.ndarray:
        """Return for each piece the mask probability of the parsed token in which it begins."""
        starts = np.array([token.start for token in tokens] or [0])
        tags = [token.pos for token in tokens] or ["X"]
        place = np.maximum(np.searchsorted(starts, [start for start, _ in offsets], side="right") - 1, 0)
        return np.array([self._of_tag.get(tags[k], self._of_x) for k in place])

    def _predict(
        self, ids: Sequence[list[int]], masked: Sequence[np.ndarray], rngs: Sequence[np.random.Generator]
    ) -> list[list[int]]:
        special, mask = self._predictor.special, self._predictor.tokenizer.mask_token_id
        out = [np.asarray(row) for row in ids]
        inputs = [np.where(m, mask, row).tolist() for row, m in zip(out, masked, strict=True)]
        chosen = masked if self.spec.positions == "masked" else [np.ones(len(row), dtype=bool) for row in out]
        where = [np.flatnonzero(~np.isin(row, special) & m) for row, m in zip(out, chosen, strict=True)]
        for i, scores in self._predictor.scores(inputs, where):
            sample = self.spec.decode == "sample"
            out[i][where[i]] = self._sample(scores, rngs[i]) if sample else scores.argmax(-1)
        return [row.tolist() for row in out]

    @staticmethod
    def _sample(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one id per position from scores (positions, vocabulary), with one uniform number each."""
        scores = scores.astype(np.float64)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        reached = np.cumsum(weights, axis=1) >= rng.random((len(scores), 1)) * weights.sum(axis=1, keepdims=True)
        return reached.argmax(axis=1)


def _fallback(row: SourceRow, column: str, rule: str) -> tuple[str | None, str]:
    """Return the text of another column, or None, and the rule."""
    text = row.views.get(column) if column else None
    return text, f"{rule}, {column}" if text is not None else rule


def passes_filter(text: str) -> bool:
    """Return whether an output passes SAN's published filter: short outputs are often mostly punctuation."""
    if not text.strip():
        return False
    marks = sum(c in string.punctuation for c in text)
    spaces = text.count(" ")
    return len(text) > 50 or marks + spaces == 0 or marks / (marks + spaces) < 0.3
