"""Examples for a report: a few texts, with their scores before and after, and the agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from opencse.debias import payload
from opencse.debias.meaning_loss import MeaningLoss
from opencse.debias.reranker import Reranker
from opencse.evaluation.written_sets import load_development
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus

Encode = Callable[[Sequence[str]], np.ndarray]
Triple = tuple[str, str, str]
"""A text, one that says the same (or answers it), and one that says the opposite."""

_WANTED = 5
_FAILURES = 1
MEASURED = 30
"""Texts from which examples are picked."""


def package_triples() -> list[Triple]:
    """Return searches of the package: a query, a passage that affirms what it looks for, and one that denies it."""
    searches = next(task for task in load_development() if task.name == "dev-search")
    return [
        (triplet.anchor, triplet.positive, triplet.negative)
        for triplet in searches.triplets[:MEASURED]
    ]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One of the two texts that are compared with an example's text.

    Attributes:
        text: The text.
        right: Whether it is the one that should come first.
        before: Cosine of the untouched model.
        after: Score of the reranker.
        agreement: How far both claim the same: −1 the opposite, 1 the same.
    """

    text: str
    right: bool
    before: float
    after: float
    agreement: float


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text with the right and the wrong candidate.

    Attributes:
        text: The text.
        candidates: The right one, then the wrong one.
    """

    text: str
    candidates: tuple[Candidate, Candidate]

    @property
    def solved_before(self) -> bool:
        """Whether the untouched model puts the right text first."""
        right, wrong = self.candidates
        return right.before > wrong.before

    @property
    def solved_after(self) -> bool:
        """Whether the reranker puts the right text first."""
        right, wrong = self.candidates
        return right.after > wrong.after


def own_triples(corpus: Corpus, recipe: Recipe) -> list[Triple]:
    """Return training rows that have both a rewording and a contradiction of their text.

    Args:
        corpus: The training rows.
        recipe: A recipe; without a loss of the kind `meaning`, there are none.
    """
    losses = [loss for loss in recipe.losses if isinstance(loss, MeaningLoss)]
    if not losses:
        return []
    loss = losses[0]
    same = [view for view in loss.same if view != "text"]
    opposed = list(chain.from_iterable(loss.opposed))
    columns = ["text"]
    columns += [recipe.used_views[view].text for view in same + opposed]
    triples = []
    for text, *others in corpus.rows(columns):
        right = next((other for other in others[: len(same)] if other), None)
        wrong = next((other for other in others[len(same) :] if other), None)
        if text and right and wrong:
            triples.append((text, right, wrong))
        if len(triples) == MEASURED:
            break
    return triples


def pick_examples(
    triples: Sequence[Triple], encode: Encode, reranker: Reranker, wanted: int = _WANTED
) -> list[Example]:
    """Return a few examples: most that the reranker puts right, and one that stays wrong, if there are any.

    Args:
        triples: Texts with a right and a wrong candidate each.
        encode: Returns the vectors of the untouched model.
        reranker: The reranker of the model with its block.
        wanted: Number of examples.
    """
    examples = measured_examples(triples, encode, reranker)
    mended = [each for each in examples if each.solved_after and not each.solved_before]
    wrong = [each for each in examples if not each.solved_after]
    others = [each for each in examples if each.solved_after and each.solved_before]
    failures = wrong[:_FAILURES]
    successes = [*mended, *others][: wanted - len(failures)]
    return [*successes, *failures]


def measured_examples(
    triples: Sequence[Triple], encode: Encode, reranker: Reranker
) -> list[Example]:
    """Return all examples with their scores; every different text is encoded once by each model."""
    if not triples:
        return []
    texts = list(dict.fromkeys(text for triple in triples for text in triple))
    place = {text: i for i, text in enumerate(texts)}
    vectors = np.asarray(encode(texts), np.float32)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    parts = reranker.parts(texts)
    examples = []
    for text, right, wrong in triples:
        candidates = []
        for candidate in (right, wrong):
            row = place[text]
            other = place[candidate]
            text_parts = parts[row : row + 1]
            other_parts = parts[other : other + 1]
            candidates.append(
                Candidate(
                    text=candidate,
                    right=candidate == right,
                    before=float(vectors[row] @ vectors[other]),
                    after=float(payload.score_pairs(text_parts, other_parts)[0]),
                    agreement=float(payload.agreement(text_parts, other_parts)[0]),
                )
            )
        examples.append(Example(text=text, candidates=(candidates[0], candidates[1])))
    return examples
