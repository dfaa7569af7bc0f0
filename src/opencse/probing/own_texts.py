"""How often does a model take the contrary for the same, on the user's own texts?

A sentence of the user's is a query. Beside the user's other texts there are two new ones: one says the same in other
words, one says the contrary in nearly the same words. A model that goes by meaning finds the first before the second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.data.documents import Passage
from opencse.errors import OpencseError
from opencse.evaluation import Encode
from opencse.probing.contraries import CONTRARIES, REWORDINGS, Rewriting, Sentence, replaced, rewritten
from opencse.probing.estimates import Estimate, mean_estimate, rate_estimate
from opencse.probing.text_check import Example, Kind, QueryCheck, TextCheck
from opencse.syntax.language import LANGUAGES, likely_language

_SHARE = 0.9  # of the rewordings that a threshold accepts
_FEW = 20  # sentences that have both: below, a number says little


@dataclass
class _Case:
    sentence: Sentence
    kind: str
    contrary: str
    rewording: str

    @property
    def reworded(self) -> str:
        return self.sentence.rewordings[self.rewording]


def check_texts(
    encode: Encode,
    passages: Sequence[Passage],
    *,
    model: str = "the model",
    queries: Sequence[str] = (),
    limit: int = 400,
    documents: int = 2000,
    deadline: float | None = None,
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> TextCheck:
    """Measure how often a model takes the contrary for the same, on these texts.

    Args:
        encode: From n texts to a matrix (n, d).
        passages: The user's texts.
        model: Name of the model.
        queries: Searches that users make.
        limit: Sentences with both a contrary and a rewording that are used at most.
        documents: Passages that are searched at most, drawn at random.
        deadline: `time.perf_counter()` from which on no more sentences are rewritten.
        seed: Of all that is drawn.
        notify: Receives short notes for the user.

    Raises:
        OpencseError: There is no text, or no contrary could be made of any.
    """
    started = time.perf_counter()
    if not passages:
        raise OpencseError("there is no text to check", "Give documents with at least one sentence.")
    chance = np.random.default_rng(seed)
    kept = sorted(chance.permutation(len(passages))[:documents].tolist())
    searched = [passages[i] for i in kept]
    language = likely_language(passage.text for passage in searched[:500])
    notes = _language_notes(language)
    rewriting = Rewriting(seed)
    notify("rewriting sentences")
    looked, both, others = 0, [], []
    for chunk in rewritten(searched, rewriting, seed=seed):
        looked += len(chunk)
        both += [s for s in chunk if s.contraries and s.rewordings]
        others += [s for s in chunk if s.contraries and not s.rewordings]
        if len(both) >= limit or (deadline is not None and time.perf_counter() > deadline):
            break
    both, others = both[:limit], others[:limit]
    if not both and not others:
        raise OpencseError(
            f"none of the {looked} sentences could be turned into its contrary",
            "The rewriting needs whole sentences in English.",
        )
    cases = [
        _Case(s, kind, contrary, list(s.rewordings)[int(chance.integers(len(s.rewordings)))])
        for s in both
        for kind, contrary in s.contraries.items()
    ]
    if len(both) < _FEW:
        notes.append(f"Only {len(both)} sentences could be both contradicted and reworded: the numbers say little.")
    notify(f"encoding {len(searched)} texts and the versions of {len(both) + len(others)} sentences")
    vectors = _Vectors(encode, _texts(searched, both, others, cases, queries))
    several = any(len(passage.sentences) > 1 for passage in searched)
    index = vectors([passage.text for passage in searched])
    examples = _searches(cases, searched, vectors, index)
    near = _near(both, vectors)
    threshold = _threshold(near)
    return TextCheck(
        model=model,
        texts=len(searched),
        sentences=looked,
        language=language,
        confused=_per_sentence(cases, [e.confused for e in examples]),
        confused_passages=_in_passages(cases, searched, vectors) if several else None,
        accepted=_accepted([*both, *others], None, threshold, vectors),
        auc=_auc(near, [*both, *others], vectors),
        threshold=threshold,
        reworded=mean_estimate(np.concatenate(list(near.values())) if near else np.zeros(0)),
        kinds=tuple(
            _kind(name, examples, [*both, *others], threshold, vectors)
            for name in CONTRARIES
            if any(name in s.contraries for s in (*both, *others))
        ),
        rewordings={
            name: rate_estimate(sum(e.confused for e in examples if e.rewording == name), len(found))
            for name in REWORDINGS
            if (found := [e for e in examples if e.rewording == name])
        },
        queries=_queries(queries, searched, rewriting, encode, vectors, index) if queries else None,
        examples=tuple(_worst_first(examples)),
        notes=tuple(notes),
        seconds=time.perf_counter() - started,
    )


class _Vectors:
    """Unit vectors of texts that are encoded once."""

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        self._encode = encode
        self._row: dict[str, int] = {}
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._row]
        if new:
            block = np.asarray(self._encode(new), dtype=np.float32)
            block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-12)
            self._row.update({text: len(self._row) + i for i, text in enumerate(new)})
            self._matrix = np.concatenate([self._matrix, block]) if self._matrix.size else block

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return self._matrix[[self._row[text] for text in texts]]

    def cosines(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        return (self(a) * self(b)).sum(axis=1) if a else np.zeros(0, dtype=np.float32)


def _texts(
    searched: Sequence[Passage],
    both: Sequence[Sentence],
    others: Sequence[Sentence],
    cases: Sequence[_Case],
    queries: Sequence[str],
) -> Iterable[str]:
    yield from (passage.text for passage in searched)
    yield from queries
    for sentence in (*both, *others):
        yield from (sentence.text, *sentence.contraries.values(), *sentence.rewordings.values())
    for case in cases:
        passage = searched[case.sentence.passage]
        if len(passage.sentences) > 1:
            yield from (replaced(passage, case.sentence.place, text) for text in (case.contrary, case.reworded))


def _searches(
    cases: Sequence[_Case], searched: Sequence[Passage], vectors: _Vectors, index: np.ndarray
) -> list[Example]:
    """Search with each sentence among all passages but its own, the contrary and the reworded sentence."""
    if not cases:
        return []
    sentences = vectors([case.sentence.text for case in cases])
    similarity = sentences @ index.T
    similarity[np.arange(len(cases)), [case.sentence.passage for case in cases]] = -np.inf
    contrary = vectors.cosines([c.sentence.text for c in cases], [c.contrary for c in cases])
    reworded = vectors.cosines([c.sentence.text for c in cases], [c.reworded for c in cases])
    nearer = [(similarity > each[:, None]).sum(axis=1) for each in (contrary, reworded)]
    return [
        Example(
            kind=case.kind,
            sentence=case.sentence.text,
            contrary=case.contrary,
            reworded=case.reworded,
            rewording=case.rewording,
            cosines=(round(float(contrary[i]), 4), round(float(reworded[i]), 4)),
            ranks=(
                int(nearer[0][i]) + 1 + int(reworded[i] > contrary[i]),
                int(nearer[1][i]) + 1 + int(contrary[i] >= reworded[i]),
            ),
            source=searched[case.sentence.passage].source,
        )
        for i, case in enumerate(cases)
    ]


def _in_passages(cases: Sequence[_Case], searched: Sequence[Passage], vectors: _Vectors) -> Estimate:
    """Search for a sentence among two versions of its passage: one says the same, one the contrary."""
    inner = [case for case in cases if len(searched[case.sentence.passage].sentences) > 1]
    queries = [case.sentence.text for case in inner]
    contrary, reworded = (
        vectors.cosines(
            queries,
            [replaced(searched[c.sentence.passage], c.sentence.place, getattr(c, which)) for c in inner],
        )
        for which in ("contrary", "reworded")
    )
    return _per_sentence(inner, (contrary >= reworded).tolist())


def _per_sentence(cases: Sequence[_Case], confused: Sequence[bool]) -> Estimate:
    """Return the mean over sentences of the share of their contraries that come first."""
    by_sentence: dict[str, list[bool]] = {}
    for case, value in zip(cases, confused, strict=True):
        by_sentence.setdefault(case.sentence.text, []).append(value)
    shares = np.array([np.mean(values) for values in by_sentence.values()])
    return mean_estimate(shares, empty="no sentence could be both contradicted and reworded")


def _near(both: Sequence[Sentence], vectors: _Vectors) -> dict[str, np.ndarray]:
    """Return the cosines of sentences and rewordings, by the way of rewording."""
    found = {}
    for name in REWORDINGS:
        having = [s for s in both if name in s.rewordings]
        if having:
            found[name] = vectors.cosines([s.text for s in having], [s.rewordings[name] for s in having])
    return found


def _threshold(near: dict[str, np.ndarray]) -> float | None:
    """Return the cosine that nine of ten rewordings reach, each way of rewording counting the same."""
    if not near:
        return None
    values = np.concatenate(list(near.values()))
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in near.values()])
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, _SHARE - 1e-9)])


def _accepted(sentences: Sequence[Sentence], kind: str | None, threshold: float | None, vectors: _Vectors) -> Estimate:
    if threshold is None:
        return Estimate(value=None, rows=0, undefined="no sentence could be reworded")
    pairs = [(s.text, text) for s in sentences for name, text in s.contraries.items() if kind in (None, name)]
    values = vectors.cosines([a for a, _ in pairs], [b for _, b in pairs])
    return rate_estimate(int((values >= threshold).sum()), len(values))


def _auc(near: dict[str, np.ndarray], sentences: Sequence[Sentence], vectors: _Vectors) -> float | None:
    from sklearn.metrics import roc_auc_score

    pairs = [(s.text, text) for s in sentences for text in s.contraries.values()]
    if not near or not pairs:
        return None
    far = vectors.cosines([a for a, _ in pairs], [b for _, b in pairs])
    same = np.concatenate(list(near.values()))
    weights = [np.full(len(each), 1 / len(each)) for each in near.values()]
    labels = np.concatenate([np.ones(len(same)), np.zeros(len(far))])
    return float(
        roc_auc_score(labels, np.concatenate([same, far]), sample_weight=np.concatenate([*weights, np.ones(len(far))]))
    )


def _kind(
    name: str, examples: Sequence[Example], sentences: Sequence[Sentence], threshold: float | None, vectors: _Vectors
) -> Kind:
    own = [e.confused for e in examples if e.kind == name]
    having = [s for s in sentences if name in s.contraries]
    return Kind(
        name=name,
        confused=rate_estimate(sum(own), len(own)),
        cosine=mean_estimate(vectors.cosines([s.text for s in having], [s.contraries[name] for s in having])),
        accepted=_accepted(sentences, name, threshold, vectors),
    )


def _queries(
    queries: Sequence[str],
    searched: Sequence[Passage],
    rewriting: Rewriting,
    encode: Encode,
    vectors: _Vectors,
    index: np.ndarray,
) -> QueryCheck:
    """Change the first hit of each query into its contrary, and search again."""
    asked = vectors(queries)
    similarity = asked @ index.T
    first = similarity.argmax(axis=1)
    places = list(dict.fromkeys((int(p), s) for p in first for s in range(len(searched[int(p)].sentences))))
    sentences = {(s.passage, s.place): s for s in rewriting(places, searched) if s.contraries}
    vectors.add(s.text for s in sentences.values())
    changed: list[tuple[int, str]] = []
    for row, hit in enumerate(first.tolist()):
        own = [s for (passage, _), s in sentences.items() if passage == hit]
        if own:
            best = own[int((vectors([s.text for s in own]) @ asked[row]).argmax())]
            changed.append((row, replaced(searched[hit], best.place, next(iter(best.contraries.values())))))
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


def _worst_first(examples: Sequence[Example]) -> list[Example]:
    """Order by how far the contrary is ahead, one kind after another in turn."""
    by_kind: dict[str, list[Example]] = {}
    for example in sorted(examples, key=lambda e: e.cosines[1] - e.cosines[0]):
        by_kind.setdefault(example.kind, []).append(example)
    ordered: list[Example] = []
    for turn in range(max(map(len, by_kind.values()), default=0)):
        ordered += [each[turn] for each in by_kind.values() if turn < len(each)]
    return sorted(ordered, key=lambda e: not e.confused)


def _language_notes(language: str | None) -> list[str]:
    if language == "en":
        return []
    what = f"The texts look {LANGUAGES[language]}" if language else "The texts do not look English"
    return [
        f"{what}. The rewriting knows English grammar alone: elsewhere only numbers and known names are changed "
        "reliably, and few sentences are reworded. Take the numbers with care."
    ]
