"""Surface similarity of n pairs of texts: match error rate, lexical overlap, edit distance.

| measure | source |
|---|---|
| `match_error_rate` | OssCSE eq. 1 |
| `lexical_overlap` | DebCSE Tables 1 and 4 |
| `consistency_opposition` | OssCSE Tables 1 and 2 |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from opencse.foundation.errors import OpencseError

__all__ = ["Split", "consistency_opposition", "lexical_overlap", "match_error_rate"]

# Cost of an edit. The number of substitutions is added to it, so it exceeds any text's words.
_ERROR = 1 << 24


def match_error_rate(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """Return the match error rate of each pair: 0 for equal words, 1 for none in common.

    It is (S + D + I) / (S + D + I + C):

    S aligned words differ, D words of the reference and I of the hypothesis have no counterpart,
    and C are equal. Words are those of `str.split()`, lower-cased, as SentEval's sentences are in
    OssCSE. Among several shortest alignments, the one is taken that prefers, from the end of both
    texts, matches and substitutions to insertions, and these to deletions. Source: Morris et al.
    (Interspeech 2004); OssCSE, Eq. 1.

    Args:
        references: n texts.
        hypotheses: n texts.

    Returns:
        float64 (n,); 0 for two empty texts.

    Raises:
        ValueError: The numbers of references and hypotheses differ.

    Example:
        >>> match_error_rate(["the road is safe"], ["the road is not safe"])
        array([0.2])
    """
    from rapidfuzz.distance import Levenshtein

    _check_columns(references, hypotheses)
    rates = np.zeros(len(references))
    for i, pair in enumerate(zip(references, hypotheses, strict=True)):
        a, b = edit_units(pair)
        # A substitution costs slightly less, or slightly more, than the other edits. So the first
        # distance counts the most substitutions of a shortest alignment, the second the fewest.
        most = Levenshtein.distance(a, b, weights=(_ERROR, _ERROR, _ERROR - 1))
        fewest = Levenshtein.distance(a, b, weights=(_ERROR, _ERROR, _ERROR + 1))
        errors, substitutions = divmod(fewest, _ERROR)
        if errors:
            if most + substitutions != errors * _ERROR:
                substitutions = _substitutions(a, b)
            # S + D + C and S + I + C are the two lengths.
            correct = (len(a) + len(b) - errors - substitutions) // 2
            rates[i] = errors / (errors + correct)
    return rates


def lexical_overlap(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """Return the share of common words in the longer text (DebCSE, Tables 1 and 4).

    Two empty texts have the overlap 1.

    A word that occurs twice in both texts counts twice, so the overlap of a text with itself is 1.

    Args:
        references: n texts.
        hypotheses: n texts.

    Returns:
        float64 (n,).
    """
    _check_columns(references, hypotheses)
    shares = np.ones(len(references))
    for i, texts in enumerate(zip(references, hypotheses, strict=True)):
        a, b = (text.lower().split() for text in texts)
        if a or b:
            shares[i] = (Counter(a) & Counter(b)).total() / max(len(a), len(b))
    return shares


@dataclass(frozen=True, kw_only=True)
class Split:
    """The split of one data set.

    Attributes:
        consistent: Mask of the consistent pairs, bool (n,); all others are opposed.
        median_score: Median of the human scores.
        median_error_rate: Median of the match error rates.
    """

    consistent: np.ndarray
    median_score: float
    median_error_rate: float


def consistency_opposition(
    sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]
) -> Split:
    """Split pairs by the medians of their data set, as in OssCSE, Table 2.

    A pair is consistent if its human score is above the median and its match error rate below, or
    the reverse. All other pairs are opposed, including ties with either median, which reproduces
    the published counts.

    Args:
        sentences1: n texts; OssCSE's counts need SentEval's texts (tokenised, lower-cased).
        sentences2: n texts.
        scores: n human similarity scores.
    """
    score = np.asarray(scores, dtype=np.float64)
    rate = match_error_rate(sentences1, sentences2)
    if not len(score):
        return Split(
            consistent=np.zeros(0, dtype=bool),
            median_score=float("nan"),
            median_error_rate=float("nan"),
        )
    middle = float(np.median(score))
    middle_rate = float(np.median(rate))
    above_but_alike = (score > middle) & (rate < middle_rate)
    below_but_different = (score < middle) & (rate > middle_rate)
    consistent = above_but_alike | below_but_different
    return Split(consistent=consistent, median_score=middle, median_error_rate=middle_rate)


def edit_units(texts: Sequence[str]) -> list[str]:
    """Return texts with one character for each lower-cased word.

    rapidfuzz compares strings fastest.
    """
    characters: defaultdict[str, str] = defaultdict(map(chr, count()).__next__)
    return ["".join([characters[word] for word in text.lower().split()]) for text in texts]


def _substitutions(a: str, b: str) -> int:
    """Return the number of substitutions in the preferred alignment, by the matrix of distances."""
    matrix = [list(range(len(b) + 1))]
    for i, one in enumerate(a):
        row = [i + 1]
        for j, other in enumerate(b):
            diagonal = matrix[i][j] + (one != other)
            row.append(min(diagonal, row[j] + 1, matrix[i][j + 1] + 1))
        matrix.append(row)
    # Walk back from the end of both texts, in the order of preference.
    i = len(a)
    j = len(b)
    count = 0
    while i and j:
        differ = a[i - 1] != b[j - 1]
        if matrix[i][j] == matrix[i - 1][j - 1] + differ:
            i -= 1
            j -= 1
            count += differ
        elif matrix[i][j] == matrix[i][j - 1] + 1:
            j -= 1
        else:
            i -= 1
    return count


def _check_columns(references: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Refuse single texts, which would be compared by letter, and lists of different lengths."""
    if isinstance(references, str) or isinstance(hypotheses, str):
        raise OpencseError(
            "expected two lists of texts, not a single text", "Put each text into a list."
        )
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")
