"""Groups of sentence pairs, those that a system trains on among them, and their cosines and wording by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.evaluation import Encode, TextEmbeddings, load_sts
from opencse.evaluation.probes import ProbeData
from opencse.evaluation.sts import paired_cosine
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.text.surface import lexical_overlap, match_error_rate

Listing = tuple[tuple[str, ...], ...]
"""Rows of texts to be read, the headings first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairCosines:
    """Cosines under one model, and match error rates (the share of words that changed), of groups of pairs."""

    pairs: Mapping[str, SentencePairs]
    cosines: Mapping[str, np.ndarray]
    error_rates: Mapping[str, np.ndarray]

    def scores(self) -> dict[str, float]:
        """Return by `GROUP: MEASURE` the mean cosine, its deviation, the mean wording and the number of pairs."""
        found: dict[str, float] = {}
        for name, pairs in self.pairs.items():
            cosines = self.cosines[name]
            found |= {
                f"{name}: count": float(len(cosines)),
                f"{name}: cosine": float(cosines.mean()),
                f"{name}: deviation": float(cosines.std(ddof=1)) if len(cosines) > 1 else 0.0,
                f"{name}: error rate": float(self.error_rates[name].mean()),
                f"{name}: overlap": float(lexical_overlap(pairs.first, pairs.second).mean()),
            }
        return found


def pair_cosines(groups: Mapping[str, SentencePairs], encode: Encode) -> PairCosines:
    """Measure groups of pairs by the vectors of their sentences."""
    texts = list(dict.fromkeys(text for pairs in groups.values() for text in (*pairs.first, *pairs.second)))
    embeddings = TextEmbeddings(texts, encode(texts))
    return PairCosines(
        pairs=groups,
        cosines={name: paired_cosine(embeddings(p.first), embeddings(p.second)) for name, p in groups.items()},
        error_rates={name: match_error_rate(p.first, p.second) for name, p in groups.items()},
    )


def list_pairs(measured: Mapping[str, PairCosines], count: int) -> Listing:
    """Return the first pairs of each group, each with its human score and its cosine under each model, as known."""
    cosines: dict[tuple[str, ...], dict[str, str]] = {}
    for label, each in measured.items():
        for name, pairs in each.pairs.items():
            for row in range(min(count, len(pairs.first))):
                score = f"{pairs.scores[row]:g}" if pairs.scores else ""
                key = (name, pairs.first[row], pairs.second[row], score)
                cosines.setdefault(key, {})[label] = f"{each.cosines[name][row]:.4f}"
    rows = [(*key, *(found.get(label, "") for label in measured)) for key, found in cosines.items()]
    return (("", "sentence", "compared with", "human score", *measured), *rows)


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """A group of sentence pairs: from opencse's own sentences, from the STS tasks, or written out.

    Attributes:
        name: What its columns begin with.
        transformation: Sentences of the probe with this transformation, such as `negation`.
        least_score: Pairs of the STS tasks with at least this human score …
        below_score: … below this one …
        below_overlap: … and with a lexical overlap below this …
        task: … of this task alone; empty for all.
        place: A single pair of the STS data: its task, its part, and its row from 0.
        sentence: One sentence …
        versions: … and its versions.
    """

    name: str
    transformation: str = ""
    least_score: float | None = None
    below_score: float = 5.01
    below_overlap: float = 1.01
    task: str = ""
    place: tuple[str, str, int] | None = None
    sentence: str = ""
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SentencePairs:
    """n sentence pairs, with human scores if there are some."""

    first: Sequence[str]
    second: Sequence[str]
    scores: Sequence[float] = ()


def load_group(group: PairGroup, data: ProbeData, source: str | Path | None = None) -> SentencePairs:
    """Return the pairs of a group, each distinct pair once; scored pairs with the highest scores first.

    Raises:
        OpencseError: There is no such pair.
    """
    if group.versions:
        return SentencePairs(first=[group.sentence] * len(group.versions), second=group.versions)
    if group.transformation:
        if data.sentences is None or group.transformation not in data.sentences.kinds:
            raise OpencseError(f"no sentences with the transformation {group.transformation!r}")
        _, first, second = data.sentences.pairs(group.transformation)
        return SentencePairs(first=first, second=second)
    if group.place is not None:
        task, split, row = group.place
        if source is None:
            raise OpencseError(f"the group {group.name} is a pair of {task}", "Pass --data.")
        (pairs,) = load_sts(source, tasks=[task], split=split)
        return _pairs([(pairs.sentence1[row], pairs.sentence2[row])], [pairs.scores[row]])
    found: dict[tuple[str, str], float] = {}
    for each in data.sts or data.pairs:
        if 1 < each.gold.max() <= 5 and (not group.task or group.task == each.name or not data.sts):
            overlap = lexical_overlap(each.sentence1, each.sentence2)
            scored = (each.gold >= (group.least_score or 0)) & (each.gold < group.below_score)
            for row in np.flatnonzero(scored & (overlap < group.below_overlap)).tolist():
                found[each.sentence1[row], each.sentence2[row]] = each.scores[row]
    if not found:
        raise OpencseError(f"no pair has a score of at least {group.least_score:g} and so little overlap")
    ranked = sorted(found, key=lambda pair: -found[pair])
    return _pairs(ranked, [found[pair] for pair in ranked])


def _pairs(pairs: Sequence[tuple[str, str]], scores: Sequence[float] = ()) -> SentencePairs:
    return SentencePairs(first=[a for a, _ in pairs], second=[b for _, b in pairs], scores=scores)


PAIRS = 2000
"""Pairs of each group: those of the first rows."""


def training_pairs(recipe: Recipe, rows: Corpus, limit: int = PAIRS) -> dict[str, SentencePairs]:
    """Return the `positive` and `negative` pairs of a system, as its terms name them.

    Without views of negatives, the negative of a sentence is the next sentence, as of a batch.
    """
    found: dict[str, list[tuple[str, str]]] = {"positive": [], "negative": []}
    columns = {role: _columns(recipe, role) for role in found}
    anchor = recipe.views[next(str(term.anchor) for term in recipe.terms if hasattr(term, "anchor"))].text
    wanted = list(dict.fromkeys([anchor, *columns["positive"], *columns["negative"]]))
    previous = ""
    for row in rows.rows(wanted):
        cells = dict(zip(wanted, row, strict=True))
        sentence = cells[anchor]
        if not sentence:
            continue
        for role, names in columns.items():
            found[role] += [(sentence, text) for name in names if (text := cells[name])]
        if not columns["negative"] and previous:
            found["negative"].append((previous, sentence))
        previous = sentence
        if all(len(pairs) >= limit for pairs in found.values()):
            break
    return {role: _pairs(pairs[:limit]) for role, pairs in found.items() if pairs}


def _columns(recipe: Recipe, role: str) -> list[str]:
    """Return the text columns of a role, `positive` or `negative`, in all terms."""
    views = []
    for term in recipe.terms:
        named = [getattr(term, role, ""), *getattr(term, f"{role}s", ())]
        views += [view for view in named if view in recipe.views]
    return list(dict.fromkeys(recipe.views[view].text for view in views))
