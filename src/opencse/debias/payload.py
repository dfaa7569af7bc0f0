"""Compare texts by numbers that are stored next to their vectors. NumPy only: no torch, no model.

A search index ranks by one inner product per text, and topic dominates it. The meaning block knows
two more things about a text: its *code*, 8 numbers that are opposed for opposite statements, and
its *topic* φ, 192 numbers about what is stated. Store both next to the vector, as float32 or as
8-bit integers, and `score` reorders the first hits of any index.

This file also stands in the folder of a saved model, so that a service can use it without opencse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """How much a pair of texts loses that is about the same, but does not claim the same.

    Attributes:
        size: κ, the factor of the penalty.
        least: a, the agreement of the codes from which on nothing is lost.
        soft: w, the doubt below which hardly anything is lost; 0 to lose κ times the doubt.
    """

    size: float
    least: float
    soft: float = 0.0


RANKING = Penalty(size=0.7, least=0.5, soft=0.35)
"""Sorts the hits of a search: ordinary search stays as good as without it, and small doubts cost little."""

CACHING = Penalty(size=1.2, least=1.0)
"""Compares two texts with a threshold, where a false hit costs more than a miss."""

SHARPNESS = 6
"""Power of the topics' cosine: pairs on the same topic have 0.8 to 1, others below 0.6."""

OPPOSITE = -0.3
"""Below this agreement, two texts on the same topic say the opposite.

Of 602 paraphrases that were written for opencse, 4.5 % fall below it, and 49 % of 540 contradictions
(`benchmarks/debias/pair_score.py`).
"""

SAME = 0.5
"""From this agreement on, two texts on the same topic say the same."""

ON_TOPIC = 0.6
"""Cosine of the topics from which on the agreement of two texts is put into words."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What is stored of n texts. The rows may have any length and any number type.

    Attributes:
        vectors: The vectors (n, length) as an index has them.
        code: What is claimed, (n, 8).
        topic: φ, what it is claimed about, (n, 192).
        asks: Whether each text is a yes/no question, bool (n,).
    """

    vectors: np.ndarray
    code: np.ndarray
    topic: np.ndarray
    asks: np.ndarray

    def __post_init__(self) -> None:
        for name in ("vectors", "code", "topic"):
            rows = getattr(self, name)
            if rows.ndim != 2 or len(rows) != len(self.asks):
                raise ValueError(
                    f"{name} has the shape {rows.shape}, which is not one row for each of "
                    f"{len(self.asks)} texts"
                )

    def __len__(self) -> int:
        return len(self.asks)

    def __getitem__(self, rows: Any) -> Parts:
        """Return the parts of some texts: a slice, an array of row numbers, or one row number."""
        if isinstance(rows, int | np.integer):
            rows = [int(rows)]
        return Parts(
            vectors=self.vectors[rows],
            code=self.code[rows],
            topic=self.topic[rows],
            asks=self.asks[rows],
        )

    def int8(self) -> Parts:
        """Return the same parts with code and topic as 8-bit integers, 200 bytes for each text."""
        return Parts(
            vectors=self.vectors,
            code=_int8(self.code),
            topic=_int8(self.topic),
            asks=self.asks,
        )

    def payload(self, row: int) -> dict[str, Any]:
        """Return code, topic and `asks` of one text as lists and a bool, for a database's payload."""
        return {
            "code": self.code[row].tolist(),
            "topic": self.topic[row].tolist(),
            "asks": bool(self.asks[row]),
        }


def from_payloads(vectors: Any, payloads: Sequence[dict[str, Any]]) -> Parts:
    """Return the parts of stored texts.

    Args:
        vectors: Their vectors (n, length) as the index has them.
        payloads: What `Parts.payload` returned for each of them.
    """
    return Parts(
        vectors=np.atleast_2d(np.asarray(vectors)),
        code=np.array([payload["code"] for payload in payloads]),
        topic=np.array([payload["topic"] for payload in payloads]),
        asks=np.array([payload["asks"] for payload in payloads], dtype=bool),
    )


def score(first: Parts, second: Parts, penalty: Penalty = RANKING) -> np.ndarray:
    r"""Return the score of each of n texts with each of m texts, float32 (n, m); higher is better.

    .. math::
        x = \max(0, a - c \cdot c') \, \max(0, \varphi \cdot \varphi')^6

        v \cdot v' - \kappa \ln(1 + (x / w)^2)

    with the vectors v, the codes c and the topics φ of both texts, each of length 1. The doubt x is
    large if two texts are about the same and don't claim the same. Without it, the cosine of the
    vectors decides. The logarithm keeps small doubts cheap and large ones bounded; with w = 0 a pair
    loses κ x. A yes/no question and a statement keep their cosine, because either statement answers
    the question.

    Args:
        first: One side, such as the query.
        second: The other side, such as the first hits of the query.
        penalty: κ, a and w: `RANKING` for the hits of a search, `CACHING` for a cache.

    Raises:
        ValueError: The vectors of both sides differ in length, or a text has no code or topic.
    """
    return _score(compared(first, second, paired=False), penalty)


def score_pairs(first: Parts, second: Parts, penalty: Penalty = RANKING) -> np.ndarray:
    """Return the `score` of text i of one side with text i of the other, float32 (n,)."""
    return _score(compared(first, second, paired=True), penalty)


def agreement(first: Parts, second: Parts) -> np.ndarray:
    """Return how far text i of one side and text i of the other claim the same, float32 (n,).

    It is the cosine of their codes: −1 for the opposite, 1 for the same. `readings` puts it into
    words.
    """
    return compared(first, second, paired=True).codes


def readings(first: Parts, second: Parts) -> list[str]:
    """Return what the `agreement` of each pair means, in words."""
    pairs = compared(first, second, paired=True)
    found = []
    for code, topic, answers in zip(pairs.codes, pairs.topics, pairs.answers, strict=True):
        if answers:
            found.append("a question and an answer")
        elif topic < ON_TOPIC:
            found.append("about something else")
        elif code < OPPOSITE:
            found.append("says the opposite")
        elif code >= SAME:
            found.append("says the same")
        else:
            found.append("can't tell")
    return found


@dataclass(frozen=True)
class Compared:
    """What a score is made of, (n, m), or (n,) for pairs.

    Attributes:
        vectors: Cosines of the vectors.
        codes: Cosines of the codes.
        topics: Cosines of the topics.
        answers: Whether one side is a yes/no question and the other is not.
    """

    vectors: np.ndarray
    codes: np.ndarray
    topics: np.ndarray
    answers: np.ndarray


def compared(first: Parts, second: Parts, *, paired: bool) -> Compared:
    """Return the cosines that a score is made of, of each pair (n,), or of all pairs (n, m)."""
    cosines = []
    for name in ("vectors", "code", "topic"):
        one = _unit(getattr(first, name), name)
        other = _unit(getattr(second, name), name)
        if one.shape[1] != other.shape[1]:
            raise ValueError(
                f"{name} of {one.shape[1]} and of {other.shape[1]} numbers cannot be compared: they "
                "are those of two models"
            )
        if paired:
            cosines.append((one * other).sum(axis=1))
        else:
            cosines.append(one @ other.T)
    if paired:
        answers = first.asks != second.asks
    else:
        answers = first.asks[:, None] != second.asks[None, :]
    vectors, codes, topics = cosines
    return Compared(vectors, codes, topics, answers)


def _score(pairs: Compared, penalty: Penalty) -> np.ndarray:
    lost = loss(pairs.codes, pairs.topics, penalty)
    return pairs.vectors - np.where(pairs.answers, 0.0, lost).astype(np.float32)


def loss(
    codes: np.ndarray, topics: np.ndarray, penalty: Penalty, sharpness: int = SHARPNESS
) -> np.ndarray:
    """Return what pairs lose by a penalty, from the cosines of their codes and of their topics."""
    disagreement = np.maximum(0.0, penalty.least - codes)
    same_topic = np.maximum(0.0, topics) ** sharpness
    doubt = disagreement * same_topic
    if penalty.soft == 0:
        return penalty.size * doubt
    return penalty.size * np.log1p((doubt / penalty.soft) ** 2)


def is_yes_no_question(text: str) -> bool:
    """Return whether an English text is a question that yes or no answers, by its first words.

    "Can I return opened items?" is one, with or without the question mark. "How do I return …?" is
    none, and neither is "Can you tell me how to …?", which asks how.
    """
    sentence = _LAST_SENTENCE.split(text.strip())[-1]
    sentence = _OPENING.sub("", sentence)
    if _ASKS_HOW.match(sentence):
        return False
    if sentence.rstrip().endswith("?"):
        return _INVERTED.match(sentence) is not None
    return _INVERTED_UNMARKED.match(sentence) is not None


_VERBS = (
    r"(?:can|could|may|might|must|shall|should|will|would|do|does|did|is|are|am|was|were|has|have"
    r"|had|cannot|ain['’]t|(?:ca|could|should|wo|would|do|does|did|is|are|was|were|has|have|had)"
    r"n['’]t)"
)
_SUBJECTS = (
    r"(?:i|you|he|she|it|we|they|there|this|that|these|those|my|your|his|her|its|our|their|the|an?"
    r"|any|anyone|anybody|anything|someone|somebody|all|every|everyone|everybody)"
)
_LAST_SENTENCE = re.compile(r"(?<=[.!?]) +(?=\S)")
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|so|and|but|or|also|then|please)\b[ ,]*)+", re.IGNORECASE
)
_INVERTED = re.compile(rf"{_VERBS} +\w", re.IGNORECASE)
# Without a question mark "do the dishes" and "have a seat" are no questions.
_INVERTED_UNMARKED = re.compile(
    rf"(?:whether\b|(?!(?:do|have|don['’]t) +(?:an?|the|this|that|my|your|all|not)\b){_VERBS} +{_SUBJECTS}\b)",
    re.IGNORECASE,
)
_ASKS_HOW = re.compile(
    r"(?:(?:can|could|would|will) +(?:you|anyone|anybody|someone|somebody)|do(?:es)? +(?:you|anyone"
    r"|anybody|someone|somebody))\b[^.?!]*?\b(?:how|what|where|when|which|who|why)\b",
    re.IGNORECASE,
)


def _unit(rows: np.ndarray, name: str) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    missing = np.flatnonzero(~(lengths[:, 0] > 1e-6))
    if len(missing):
        raise ValueError(
            f"text {missing[0]} has no {name}: it was embedded without a meaning block. Embed it "
            "again, or leave it out"
        )
    return rows / lengths


def _int8(rows: np.ndarray) -> np.ndarray:
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9)
    return np.round(rows * (127 / largest)).astype(np.int8)
