"""How often a model ranks a contradiction above a rewording, on the user's own texts.

A sentence of the user's is a query. Two new texts are searched beside the user's other texts: one says the same in
other words, one contradicts it in nearly the same words. A model that follows meaning ranks the first one higher.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import Encode
from opencse.evaluation.check.contradictions import (
    CONTRADICTIONS,
    REWORDINGS,
    RewrittenSentence,
    SentenceRewriter,
    replace_sentence,
    rewrite_sentences,
)
from opencse.evaluation.check.text_check import ContradictionKind, QueryCheck, SearchExample, TextCheck
from opencse.evaluation.probes.estimates import Estimate, mean_estimate, rate_estimate
from opencse.foundation.errors import OpencseError
from opencse.foundation.evidence import LEAST_ROWS
from opencse.foundation.unit_rows import unit_rows
from opencse.text.documents import DocumentPassage
from opencse.text.languages import AUTO, ENGLISH, ChosenLanguage, choose_language, language_packs

_ACCEPTED_REWORDINGS = 0.9  # share that the threshold accepts


class _UnitVectors:
    """Unit vectors by text; each text is encoded once."""

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        self._encode = encode
        self._vectors: dict[str, np.ndarray] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Encode the texts that have no vector yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, unit_rows(self._encode(new)), strict=True)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of n > 0 texts, float32 (n, dim)."""
        return np.stack([self._vectors[text] for text in texts])

    def cosines(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """Return the cosines of n pairs, (n,)."""
        return (self(a) * self(b)).sum(axis=1) if a else np.zeros(0, dtype=np.float32)


@dataclass
class _Case:
    sentence: RewrittenSentence
    kind: str
    contradiction: str
    rewording: str

    @property
    def reworded(self) -> str:
        return self.sentence.rewordings[self.rewording]


def check_texts(
    encode: Encode,
    passages: Sequence[DocumentPassage],
    *,
    model: str = "the model",
    queries: Sequence[str] = (),
    limit: int = 400,
    documents: int = 2000,
    deadline: float | None = None,
    seed: int = 0,
    language: str = AUTO,
    syntax: str = "",
    notify: Callable[[str], None] = lambda _: None,
) -> TextCheck:
    """Measure how often a model ranks a contradiction above a rewording, on these texts.

    Args:
        encode: From n texts to a matrix of shape (n, dim).
        passages: The user's texts.
        model: Name of the model.
        queries: Searches that users make.
        limit: Maximum number of sentences with both a contradiction and a rewording.
        documents: Maximum number of passages searched; more are sampled at random.
        deadline: `time.perf_counter()` after which no more sentences are rewritten.
        seed: Seed of all sampling.
        language: Code of the language of the texts, or `auto`.
        syntax: A spaCy pipeline for this language; by default the one that its rules come with.
        notify: Receives short notes for the user.

    Raises:
        OpencseError: There is no text, no sentence could be contradicted, or the language is unknown.
    """
    started = time.perf_counter()
    if not passages:
        raise OpencseError("there is no text to check", "Give documents with at least one sentence.")
    rng = np.random.default_rng(seed)
    searched = [passages[i] for i in sorted(rng.permutation(len(passages))[:documents].tolist())]
    chosen = choose_language(language, (passage.text for passage in searched[:500]), syntax)
    rewriter = SentenceRewriter(seed, chosen.pack)
    notify(chosen.line(CONTRADICTIONS | REWORDINGS))
    both, contradicted, parsed = _rewrite(searched, rewriter, limit, deadline, seed)
    sentences = both + contradicted
    cases = [
        _Case(s, kind, contradiction, list(s.rewordings)[int(rng.integers(len(s.rewordings)))])
        for s in both
        for kind, contradiction in s.contradictions.items()
    ]
    notify(f"encoding {len(searched)} texts and the versions of {len(sentences)} sentences")
    vectors = _UnitVectors(encode, _texts(searched, sentences, cases, queries))
    index = vectors([passage.text for passage in searched])
    examples = _searches(cases, searched, vectors, index)
    same = _cosines([(s.text, s.rewordings) for s in both], REWORDINGS, vectors)
    far = _cosines([(s.text, s.contradictions) for s in sentences], CONTRADICTIONS, vectors)
    threshold = _threshold(same)
    several = any(len(passage.sentences) > 1 for passage in searched)
    return TextCheck(
        model=model,
        texts=len(searched),
        sentences=parsed,
        language=chosen.found,
        contradiction_first=_per_sentence(cases, [e.contradiction_first for e in examples]),
        contradiction_first_in_passages=_in_passages(cases, searched, vectors) if several else None,
        accepted=_accepted(list(far.values()), threshold),
        auc=_auc(list(same.values()), list(far.values())),
        threshold=threshold,
        reworded=mean_estimate(np.concatenate([np.zeros(0), *same.values()])),
        kinds=_by_contradiction(examples, far, threshold),
        rewordings=_by_rewording(examples),
        queries=_queries(queries, searched, rewriter, vectors, index) if queries else None,
        examples=tuple(_worst_first(examples)),
        notes=tuple(_notes(chosen, len(both))),
        seconds=time.perf_counter() - started,
    )


def _rewrite(
    passages: Sequence[DocumentPassage], rewriter: SentenceRewriter, limit: int, deadline: float | None, seed: int
) -> tuple[list[RewrittenSentence], list[RewrittenSentence], int]:
    """Rewrite sentences until `limit` of them have both versions, or until the deadline.

    Returns:
        Sentences with both a contradiction and a rewording, those with contradictions only, and how many were parsed.

    Raises:
        OpencseError: No sentence could be contradicted.
    """
    both: list[RewrittenSentence] = []
    contradicted: list[RewrittenSentence] = []
    parsed = 0
    for chunk in rewrite_sentences(passages, rewriter, seed=seed):
        parsed += len(chunk)
        both += [s for s in chunk if s.contradictions and s.rewordings]
        contradicted += [s for s in chunk if s.contradictions and not s.rewordings]
        if len(both) >= limit or (deadline is not None and time.perf_counter() > deadline):
            break
    if not both and not contradicted:
        names = ", ".join(pack.name for pack in language_packs().values())
        raise OpencseError(
            f"none of the {parsed} sentences could be turned into a contradiction",
            f"The rewriting needs whole sentences, in a language that has rules: {names}.",
        )
    return both[:limit], contradicted[:limit], parsed


def _texts(
    searched: Sequence[DocumentPassage],
    sentences: Sequence[RewrittenSentence],
    cases: Sequence[_Case],
    queries: Sequence[str],
) -> Iterable[str]:
    yield from (passage.text for passage in searched)
    yield from queries
    for sentence in sentences:
        yield from (sentence.text, *sentence.contradictions.values(), *sentence.rewordings.values())
    for case in cases:
        passage = searched[case.sentence.passage]
        if len(passage.sentences) > 1:
            yield from (
                replace_sentence(passage, case.sentence.position, text) for text in (case.contradiction, case.reworded)
            )


def _searches(
    cases: Sequence[_Case], searched: Sequence[DocumentPassage], vectors: _UnitVectors, index: np.ndarray
) -> list[SearchExample]:
    """Search with each sentence among the other passages, its contradiction and its rewording."""
    if not cases:
        return []
    sentences = vectors([case.sentence.text for case in cases])
    similarity = sentences @ index.T
    similarity[np.arange(len(cases)), [case.sentence.passage for case in cases]] = -np.inf
    contradiction = vectors.cosines([c.sentence.text for c in cases], [c.contradiction for c in cases])
    reworded = vectors.cosines([c.sentence.text for c in cases], [c.reworded for c in cases])
    nearer = [(similarity > each[:, None]).sum(axis=1) for each in (contradiction, reworded)]
    return [
        SearchExample(
            kind=case.kind,
            sentence=case.sentence.text,
            contradiction=case.contradiction,
            reworded=case.reworded,
            rewording=case.rewording,
            cosines=(round(float(contradiction[i]), 4), round(float(reworded[i]), 4)),
            ranks=(
                int(nearer[0][i]) + 1 + int(reworded[i] > contradiction[i]),
                int(nearer[1][i]) + 1 + int(contradiction[i] >= reworded[i]),
            ),
            source=searched[case.sentence.passage].source,
        )
        for i, case in enumerate(cases)
    ]


def _in_passages(cases: Sequence[_Case], searched: Sequence[DocumentPassage], vectors: _UnitVectors) -> Estimate:
    """Search for a sentence among two versions of its passage, with the rewording and with the contradiction."""
    inner = [case for case in cases if len(searched[case.sentence.passage].sentences) > 1]
    queries = [case.sentence.text for case in inner]
    contradiction, reworded = (
        vectors.cosines(
            queries,
            [replace_sentence(searched[c.sentence.passage], c.sentence.position, getattr(c, which)) for c in inner],
        )
        for which in ("contradiction", "reworded")
    )
    return _per_sentence(inner, (contradiction >= reworded).tolist())


def _per_sentence(cases: Sequence[_Case], contradiction_first: Sequence[bool]) -> Estimate:
    """Return the mean over sentences of the share of their contradictions that rank first."""
    by_sentence: dict[str, list[bool]] = {}
    for case, value in zip(cases, contradiction_first, strict=True):
        by_sentence.setdefault(case.sentence.text, []).append(value)
    shares = np.array([np.mean(values) for values in by_sentence.values()])
    return mean_estimate(shares, empty="no sentence could be both contradicted and reworded")


def _cosines(
    versions: Sequence[tuple[str, Mapping[str, str]]], kinds: Iterable[str], vectors: _UnitVectors
) -> dict[str, np.ndarray]:
    """Return the cosines of sentences and their versions, for each kind of version that occurs."""
    pairs = {kind: [(text, made[kind]) for text, made in versions if kind in made] for kind in kinds}
    return {kind: vectors.cosines(*zip(*each, strict=True)) for kind, each in pairs.items() if each}


def _threshold(cosines: dict[str, np.ndarray]) -> float | None:
    """Return the cosine that nine of ten rewordings reach, with equal weight for each kind of rewording."""
    if not cosines:
        return None
    values = np.concatenate(list(cosines.values()))
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in cosines.values()])
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, _ACCEPTED_REWORDINGS - 1e-9)])


def _accepted(cosines: Sequence[np.ndarray], threshold: float | None) -> Estimate:
    """Return the share of contradictions whose cosine reaches the threshold."""
    if threshold is None:
        return Estimate(value=None, rows=0, undefined="no sentence could be reworded")
    values = np.concatenate([np.zeros(0), *cosines])
    return rate_estimate(int((values >= threshold).sum()), len(values))


def _auc(same: Sequence[np.ndarray], far: Sequence[np.ndarray]) -> float | None:
    """Return the area under the ROC curve, with equal weight for each kind of rewording."""
    from sklearn.metrics import roc_auc_score

    if not same or not far:
        return None
    labels = np.repeat([1.0, 0.0], [sum(map(len, same)), sum(map(len, far))])
    weights = [np.full(len(each), 1 / len(each)) for each in same] + [np.ones(len(each)) for each in far]
    return float(roc_auc_score(labels, np.concatenate([*same, *far]), sample_weight=np.concatenate(weights)))


def _by_contradiction(
    examples: Sequence[SearchExample], cosines: Mapping[str, np.ndarray], threshold: float | None
) -> tuple[ContradictionKind, ...]:
    """Return the results for each kind of contradiction that occurs."""
    first = {name: [e.contradiction_first for e in examples if e.kind == name] for name in cosines}
    return tuple(
        ContradictionKind(
            name=name,
            contradiction_first=rate_estimate(sum(first[name]), len(first[name])),
            cosine=mean_estimate(values),
            accepted=_accepted([values], threshold),
        )
        for name, values in cosines.items()
    )


def _by_rewording(examples: Sequence[SearchExample]) -> dict[str, Estimate]:
    """Return how often the contradiction ranks first, for each kind of rewording that occurs."""
    shares = {}
    for name in REWORDINGS:
        first = [e.contradiction_first for e in examples if e.rewording == name]
        if first:
            shares[name] = rate_estimate(sum(first), len(first))
    return shares


def _queries(
    queries: Sequence[str],
    searched: Sequence[DocumentPassage],
    rewriter: SentenceRewriter,
    vectors: _UnitVectors,
    index: np.ndarray,
) -> QueryCheck:
    """Replace the first hit of each query by a contradiction of it, and search again."""
    asked = vectors(queries)
    similarity = asked @ index.T
    first = similarity.argmax(axis=1)
    positions = list(dict.fromkeys((int(p), s) for p in first for s in range(len(searched[int(p)].sentences))))
    sentences = {(s.passage, s.position): s for s in rewriter(positions, searched) if s.contradictions}
    vectors.add(s.text for s in sentences.values())
    changed: list[tuple[int, str]] = []
    for row, hit in enumerate(first.tolist()):
        own = [s for (passage, _), s in sentences.items() if passage == hit]
        if own:
            best = own[int((vectors([s.text for s in own]) @ asked[row]).argmax())]
            changed.append(
                (row, replace_sentence(searched[hit], best.position, next(iter(best.contradictions.values()))))
            )
    vectors.add(text for _, text in changed)
    rows = [row for row, _ in changed]
    values = (vectors([text for _, text in changed]) * asked[rows]).sum(axis=1) if changed else np.zeros(0)
    rest = similarity[rows]
    hits = rest[np.arange(len(rows)), first[rows]].copy() if changed else np.zeros(0)
    rest[np.arange(len(rows)), first[rows]] = -np.inf
    return QueryCheck(
        asked=len(queries),
        above=rate_estimate(int((values > hits).sum()), len(rows)),
        still_first=rate_estimate(int((values > rest.max(axis=1, initial=-np.inf)).sum()), len(rows)),
    )


def _worst_first(examples: Sequence[SearchExample]) -> list[SearchExample]:
    """Return the examples by how far the contradiction is ahead, taking turns among the kinds."""
    by_kind: dict[str, list[SearchExample]] = {}
    for example in sorted(examples, key=lambda e: e.cosines[1] - e.cosines[0]):
        by_kind.setdefault(example.kind, []).append(example)
    ordered: list[SearchExample] = []
    for turn in range(max(map(len, by_kind.values()), default=0)):
        ordered += [each[turn] for each in by_kind.values() if turn < len(each)]
    return sorted(ordered, key=lambda e: not e.contradiction_first)


def _notes(chosen: ChosenLanguage, count: int) -> Iterator[str]:
    """Yield notes on the language, unless the texts are in English as expected, and on too few sentences."""
    if not chosen.found == chosen.pack.code == ENGLISH.code:
        line = chosen.line(CONTRADICTIONS | REWORDINGS)
        yield f"{line[0].upper()}{line[1:]}."
    if count < LEAST_ROWS:
        yield f"Only {count} sentences could be both contradicted and reworded: the numbers say little."
