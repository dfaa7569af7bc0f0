"""How often a model ranks a contradiction above a rewording, on the user's own texts.

Each query is one of the user's sentences. Two new texts are searched together with the user's other
texts: one means the same in other words, the other contradicts it in nearly the same words. A model
that follows meaning ranks the first one higher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation import Encode, TextEmbeddings
from opencse.evaluation.check.contradictions import (
    CONTRADICTIONS,
    KINDS,
    REWORDING_KINDS,
    REWORDINGS,
    UNTRAINED,
    RewrittenSentence,
    SentenceRewriter,
)
from opencse.evaluation.estimate import Estimate, mean_estimate, rate_estimate
from opencse.evaluation.task import Similarity
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LEAST_ROWS
from opencse.foundation.result_table import Cell, Table
from opencse.foundation.roles import as_documents, as_queries, encode_roles, plain
from opencse.text.documents import DocumentPassage
from opencse.text.languages import ENGLISH, ChosenLanguage, language_packs

# Share of the rewordings that the threshold accepts.
_ACCEPTED_REWORDINGS = 0.9
# Shares of the rewordings that the thresholds of a report accept.
_CACHES = (0.8, 0.9, 0.95)

CacheScore = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""The score by which a semantic cache compares n pairs of texts, (n,)."""

# A sentence, and the kinds of one contradiction and one rewording of it.
_Case = tuple[RewrittenSentence, str, str]


@dataclass(frozen=True, kw_only=True)
class SearchExample:
    """One search: a sentence, a contradiction and a rewording of it.

    Attributes:
        kind: Kind of contradiction, as in `CONTRADICTIONS`.
        sentence: The query, from the user's texts.
        contradiction: A sentence that contradicts it.
        reworded: A sentence with the same meaning.
        rewording: Kind of rewording, as in `REWORDINGS`.
        cosines: Cosine of the query with the contradiction, and with the rewording.
        ranks: Ranks of these two among the user's texts, from 1.
        source: The file that the sentence comes from.
    """

    kind: str
    sentence: str
    contradiction: str
    reworded: str
    rewording: str
    cosines: tuple[float, float]
    ranks: tuple[int, int]
    source: str

    @property
    def contradiction_first(self) -> bool:
        """Whether the contradiction ranks above the rewording."""
        return self.ranks[0] < self.ranks[1]


@dataclass(frozen=True, kw_only=True)
class CacheRate:
    """How many contradictions a semantic cache takes for a hit.

    Attributes:
        score: "cosine", or "cosine and agreement".
        accepted: Share of the rewordings that the threshold accepts.
        threshold: The score that they reach.
        false_hits: Share of the contradictions that reach it, of the kinds that training rows are
            made with.
        untrained: The same, of kinds that no training row has.
    """

    score: str
    accepted: float
    threshold: float
    false_hits: Estimate
    untrained: Estimate


@dataclass(frozen=True, kw_only=True, repr=False)
class TextCheck(JupyterMixin):
    """How often a model ranks a contradiction above a rewording, on the user's texts.

    Attributes:
        model: Name of the model.
        texts: Number of passages searched.
        sentences: Number of sentences parsed.
        language: Code of the likely language of the texts, None for unknown.
        contradiction_first: Share of sentences whose contradiction ranks above the rewording, with
            a 95 % bootstrap interval over sentences: the number to quote.
        contradiction_first_in_passages: The same with both sentences inside their passages; None if
            each passage is one sentence.
        untrained: Contradiction first for the kinds of contradictions that no training row has; the
            two numbers above leave these out.
        cache: False hits of a semantic cache at three thresholds, by each score.
        accepted: Share of contradictions above `threshold`: false hits of a semantic cache with it.
        threshold: The cosine that nine of ten rewordings reach.
        kinds: Share of searches that find the contradiction first, by kind of contradiction; Wilson
            intervals.
        rewordings: The same by kind of rewording.
        examples: Searches, worst first.
        notes: Remarks for the reader.
    """

    model: str = "the model"
    texts: int
    sentences: int
    language: str | None
    contradiction_first: Estimate
    contradiction_first_in_passages: Estimate | None
    untrained: Estimate
    cache: tuple[CacheRate, ...] = ()
    accepted: Estimate
    threshold: float | None
    kinds: dict[str, Estimate]
    rewordings: dict[str, Estimate]
    examples: tuple[SearchExample, ...] = field(repr=False)
    notes: tuple[str, ...]

    def headline(self) -> str:
        """Return the main result as one sentence."""
        if self.contradiction_first.value is None:
            return f"{self.model}: not measured ({self.contradiction_first.undefined})."
        share = self.contradiction_first
        if share.rows < LEAST_ROWS:
            return (
                f"{self.model}: can't say, too few sentences ({share.rows}; at least {LEAST_ROWS})."
            )
        return (
            f"{self.model} ranks the contradiction above the rewording for "
            f"{share.percent().figure} of {share.rows:,} sentences "
            f"(95 % interval {share.interval(0, scale=100)} %)."
        )

    def __repr__(self) -> str:
        return f"<TextCheck: {self.headline()}>"

    def __rich__(self) -> RenderableType:
        lines = []
        for example in self.examples[:3]:
            lines.append(Text(example.sentence, style="bold"))
            found = [
                (example.cosines[0], "contradiction", example.contradiction),
                (example.cosines[1], "rewording", example.reworded),
            ]
            for cosine, relation, text in sorted(found, reverse=True):
                lines.append(Text(f"  {cosine:.2f}  {relation:<13}  {text}"))
        remarks = [Text(line) for line in (*self._lines(), *self.notes)]
        tables = [*self.tables()]
        if self.cache:
            tables.append(self.cache_table())
        return Group(*lines, *tables, *remarks, Text(self.headline(), style="bold"))

    def cache_table(self) -> Table:
        """Return the false hits of a semantic cache, by score and by the accepted rewordings."""
        rows: list[list[Cell]] = []
        for rate in self.cache:
            row: list[Cell] = [rate.score, f"{rate.accepted:.0%}", f"{rate.threshold:.2f}"]
            rows.append([*row, rate.false_hits.percent(), rate.untrained.percent()])
        heads = (
            "score",
            "rewordings accepted",
            "threshold",
            "false hits",
            "false hits, kinds not trained on",
        )
        return Table(heads, rows, "False hits of a semantic cache")

    def tables(self) -> tuple[Table, Table]:
        """Return how often the contradiction is first, by its kind and by the rewording's."""
        return (
            _shares_table("contradiction by", self.kinds),
            _shares_table("reworded by", self.rewordings),
        )

    def _lines(self) -> Iterator[str]:
        if self.threshold is not None and self.accepted.value is not None:
            yield (
                f"as a semantic cache: at cosine {self.threshold:.2f}, which nine of ten rewordings "
                "reach, "
                f"{self.accepted.percent().figure} of {self.accepted.rows:,} contradictions are false hits"
            )
        if self.untrained.value is not None:
            yield (
                "kinds of contradictions that no training row has: contradiction first for "
                f"{self.untrained.percent().figure} of {self.untrained.rows:,} sentences"
            )
        share = self.contradiction_first_in_passages
        if share is not None and share.value is not None:
            yield f"within passages: for {share.percent().figure} of {share.rows:,} sentences"


def _shares_table(title: str, shares: dict[str, Estimate]) -> Table:
    rows = [(name, share.rows, share.percent()) for name, share in shares.items()]
    return Table((title, "searches", "contradiction first"), rows)


def check_texts(
    encode: Encode,
    passages: Sequence[DocumentPassage],
    rewriter: SentenceRewriter,
    *,
    limit: int = 400,
    documents: int = 2000,
    sentences: int | None = None,
    similarity: Similarity | None = None,
    cache_score: CacheScore | None = None,
) -> TextCheck:
    """Measure how often a model ranks a contradiction above a rewording, on these texts.

    Args:
        encode: From n texts to a matrix of shape (n, dim).
        passages: The user's texts.
        rewriter: Contradicts and rewords sentences of their language; its seed is that of all
            sampling.
        limit: Maximum number of sentences with both a contradiction and a rewording.
        documents: Maximum number of passages searched; more are sampled at random.
        sentences: Maximum number of sentences that are parsed; None for as many as `limit` needs.
            A number, not a time, so that two models get the same sentences.
        similarity: The model's own similarity, of vectors as they are; None for the cosine.
        cache_score: Scores pairs as a semantic cache with agreement does; None without it.

    Raises:
        OpencseError: There is no text, or no sentence could be contradicted.
    """
    if not passages:
        raise OpencseError(
            "there is no text to check", "Give documents with at least one sentence."
        )
    rng = np.random.default_rng(rewriter.seed)
    searched = [passages[i] for i in sorted(rng.permutation(len(passages))[:documents].tolist())]
    both, contradicted, parsed = _rewrite(searched, rewriter, limit, sentences)
    cases = _cases(both, rng)
    inside = []
    for case in cases:
        if case[1] not in UNTRAINED and len(searched[case[0].passage].sentences) > 1:
            inside.append(_in_passage(case, searched))

    vectors = _encoded(encode, searched, [*both, *contradicted], inside, similarity)
    examples = _searches(cases, searched, vectors)
    reworded = _reworded(both)
    opposed = _opposed([*both, *contradicted], untrained=False)
    threshold = _threshold(_by_kind(vectors.paired, reworded), _ACCEPTED_REWORDINGS)
    accepted = Estimate(value=None, rows=0, undefined="no sentence could be reworded")
    if threshold is not None:
        accepted = _reaching(_scored(vectors.paired, opposed), threshold)
    untrained = _opposed([*both, *contradicted], untrained=True)
    cache = list(_cache_rates("cosine", vectors.paired, reworded, opposed, untrained))
    if cache_score is not None:
        name = "cosine and agreement"
        cache += _cache_rates(name, cache_score, reworded, opposed, untrained)
    in_passages = None
    if any(len(passage.sentences) > 1 for passage in searched):
        in_passages = _first_in_passages(inside, vectors)
    first = [example.contradiction_first for example in examples]
    return TextCheck(
        texts=len(searched),
        sentences=parsed,
        language=rewriter.language.found,
        contradiction_first=_first([each for each in examples if each.kind not in UNTRAINED]),
        untrained=_first([each for each in examples if each.kind in UNTRAINED]),
        cache=tuple(cache),
        contradiction_first_in_passages=in_passages,
        accepted=accepted,
        threshold=threshold,
        kinds=_rates([example.kind for example in examples], first),
        rewordings=_rates([example.rewording for example in examples], first),
        examples=tuple(_worst_first(examples)),
        notes=tuple(_notes(rewriter.language, len(both))),
    )


def _cases(sentences: Sequence[RewrittenSentence], rng: np.random.Generator) -> list[_Case]:
    """Return each contradiction of the sentences with a rewording, drawn at random."""
    cases = []
    for sentence in sentences:
        kinds = list(sentence.rewordings)
        for contradiction in sentence.contradictions:
            drawn = kinds[int(rng.integers(len(kinds)))]
            cases.append((sentence, contradiction, drawn))
    return cases


_Pairs = list[tuple[str, str]]


def _first(examples: Sequence[SearchExample]) -> Estimate:
    """Return the share of sentences whose contradiction ranks first."""
    sentences = [example.sentence for example in examples]
    return _per_sentence(sentences, [example.contradiction_first for example in examples])


def _opposed(sentences: Sequence[RewrittenSentence], *, untrained: bool) -> _Pairs:
    """Return each sentence with its contradictions, of the usual or of the untrained kinds."""
    pairs: _Pairs = []
    for sentence in sentences:
        for kind, new in sentence.contradictions.items():
            if (kind in UNTRAINED) == untrained:
                pairs.append((sentence.text, new))
    return pairs


def _reworded(sentences: Sequence[RewrittenSentence]) -> dict[str, _Pairs]:
    """Return each sentence with its rewordings, by the kinds of rewording that occur."""
    pairs: dict[str, _Pairs] = {}
    for kind in REWORDING_KINDS:
        for sentence in sentences:
            if kind in sentence.rewordings:
                pairs.setdefault(kind, []).append((sentence.text, sentence.rewordings[kind]))
    return pairs


def _scored(score: CacheScore, pairs: _Pairs) -> np.ndarray:
    """Return the score of each pair with which a cache would compare them, (n,)."""
    if not pairs:
        return np.zeros(0)
    first = [text for text, _ in pairs]
    second = [text for _, text in pairs]
    return score(first, second)


def _by_kind(score: CacheScore, pairs: dict[str, _Pairs]) -> dict[str, np.ndarray]:
    return {kind: _scored(score, some) for kind, some in pairs.items()}


def _reaching(scores: np.ndarray, threshold: float) -> Estimate:
    """Return the share of scores that reach a threshold."""
    if not len(scores):
        return Estimate(value=None, rows=0, undefined="no contradiction of these kinds")
    return rate_estimate(int((scores >= threshold).sum()), len(scores))


def _cache_rates(
    name: str,
    score: CacheScore,
    reworded: dict[str, _Pairs],
    opposed: _Pairs,
    untrained: _Pairs,
) -> Iterator[CacheRate]:
    """Yield how many contradictions reach each threshold of a cache, by a score."""
    same = _by_kind(score, reworded)
    usual = _scored(score, opposed)
    other = _scored(score, untrained)
    for accepted in _CACHES:
        threshold = _threshold(same, accepted)
        if threshold is None:
            return
        yield CacheRate(
            score=name,
            accepted=accepted,
            threshold=threshold,
            false_hits=_reaching(usual, threshold),
            untrained=_reaching(other, threshold),
        )


def _encoded(
    encode: Encode,
    searched: Sequence[DocumentPassage],
    sentences: Sequence[RewrittenSentence],
    inside: Sequence[tuple[str, str, str]],
    similarity: Similarity | None,
) -> TextEmbeddings:
    """Encode every distinct text once: passages, sentences, and both with their versions.

    In a search, sentences are queries, and all that they find are documents; a cache compares texts
    without roles.
    """
    texts = as_documents([passage.text for passage in searched])
    for sentence in sentences:
        versions = [*sentence.contradictions.values(), *sentence.rewordings.values()]
        texts += as_queries([sentence.text])
        texts += as_documents(versions)
        texts += [sentence.text, *versions]
    for _, contradicted, reworded in inside:
        texts += as_documents([contradicted, reworded])
    distinct = list(dict.fromkeys(texts))
    return TextEmbeddings(distinct, encode_roles(encode, distinct), similarity)


def _first_in_passages(inside: Sequence[tuple[str, str, str]], vectors: TextEmbeddings) -> Estimate:
    """Return how often a sentence is closer to its passage with the contradiction."""
    sentences = [sentence for sentence, _, _ in inside]
    queries = as_queries(sentences)
    contradicted = vectors.paired(queries, as_documents([passage for _, passage, _ in inside]))
    reworded = vectors.paired(queries, as_documents([passage for _, _, passage in inside]))
    return _per_sentence(sentences, (contradicted >= reworded).tolist())


def _rewrite(
    passages: Sequence[DocumentPassage],
    rewriter: SentenceRewriter,
    limit: int,
    sentences: int | None,
) -> tuple[list[RewrittenSentence], list[RewrittenSentence], int]:
    """Rewrite sentences until `limit` of them have both versions, or until enough were parsed.

    Returns:
        Sentences with both a contradiction and a rewording, those with contradictions only, and how
        many were parsed.

    Raises:
        OpencseError: No sentence could be contradicted.
    """
    both: list[RewrittenSentence] = []
    contradicted: list[RewrittenSentence] = []
    parsed = 0
    for chunk in rewriter(passages):
        parsed += len(chunk)
        both += [s for s in chunk if s.contradictions and s.rewordings]
        contradicted += [s for s in chunk if s.contradictions and not s.rewordings]
        if len(both) >= limit or (sentences is not None and parsed >= sentences):
            break
    if not both and not contradicted:
        names = ", ".join(pack.name for pack in language_packs().values())
        raise OpencseError(
            f"none of the {parsed} sentences could be turned into a contradiction",
            f"The rewriting needs complete sentences, in a language that has rules: {names}.",
        )
    return both[:limit], contradicted[:limit], parsed


def _in_passage(case: _Case, searched: Sequence[DocumentPassage]) -> tuple[str, str, str]:
    """Return a sentence, and its passage with the contradiction and with the rewording instead."""
    sentence, kind, rewording = case
    whole = searched[sentence.passage].sentences
    before = whole[: sentence.position]
    after = whole[sentence.position + 1 :]
    contradicted = " ".join([*before, sentence.contradictions[kind], *after])
    reworded = " ".join([*before, sentence.rewordings[rewording], *after])
    return sentence.text, contradicted, reworded


def _searches(
    cases: Sequence[_Case], searched: Sequence[DocumentPassage], vectors: TextEmbeddings
) -> list[SearchExample]:
    """Search with each sentence among the other passages, its contradiction and its rewording."""
    sentences = as_queries([sentence.text for sentence, *_ in cases])
    contradictions = as_documents([sentence.contradictions[kind] for sentence, kind, _ in cases])
    rewordings = as_documents([sentence.rewordings[kind] for sentence, _, kind in cases])
    passages = as_documents([passage.text for passage in searched])
    similarity = vectors.compared(sentences, passages)
    # A sentence does not search its own passage.
    own = [sentence.passage for sentence, _, _ in cases]
    similarity[np.arange(len(cases)), own] = -np.inf
    contradiction = vectors.paired(sentences, contradictions)
    reworded = vectors.paired(sentences, rewordings)
    # With equal cosines, the contradiction ranks first.
    contradiction_ranks = (similarity > contradiction[:, None]).sum(axis=1) + 1
    contradiction_ranks += reworded > contradiction
    reworded_ranks = (similarity > reworded[:, None]).sum(axis=1) + 1
    reworded_ranks += contradiction >= reworded
    examples = []
    for i, (sentence, kind, rewording) in enumerate(cases):
        example = SearchExample(
            kind=kind,
            sentence=sentence.text,
            contradiction=plain(contradictions[i]),
            reworded=plain(rewordings[i]),
            rewording=rewording,
            cosines=(round(float(contradiction[i]), 4), round(float(reworded[i]), 4)),
            ranks=(int(contradiction_ranks[i]), int(reworded_ranks[i])),
            source=searched[sentence.passage].source,
        )
        examples.append(example)
    return examples


def _per_sentence(sentences: Sequence[str], contradiction_first: Sequence[bool]) -> Estimate:
    """Return the mean over sentences of the share of their contradictions that rank first."""
    by_sentence: dict[str, list[bool]] = {}
    for sentence, value in zip(sentences, contradiction_first, strict=True):
        by_sentence.setdefault(sentence, []).append(value)
    shares = np.array([np.mean(values) for values in by_sentence.values()])
    return mean_estimate(shares, empty="no sentence could be both contradicted and reworded")


def _rates(kinds: Sequence[str], contradiction_first: Sequence[bool]) -> dict[str, Estimate]:
    """Return how often the contradiction ranks first, for each kind that occurs."""
    outcomes: dict[str, list[bool]] = {}
    for kind in (*KINDS, *REWORDING_KINDS):
        if kind in kinds:
            outcomes[kind] = []
    for kind, first in zip(kinds, contradiction_first, strict=True):
        outcomes[kind].append(first)
    return {kind: rate_estimate(sum(values), len(values)) for kind, values in outcomes.items()}


def _threshold(scores: dict[str, np.ndarray], share: float) -> float | None:
    """Return the score that a share of the rewordings reaches, with equal weight for each kind."""
    if not scores:
        return None
    values = np.concatenate(list(scores.values()))
    weights = np.concatenate([np.full(len(group), 1 / len(group)) for group in scores.values()])
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, share - 1e-9)])


def _worst_first(examples: Sequence[SearchExample]) -> list[SearchExample]:
    """Return the examples by the contradiction's lead, taking turns among the kinds."""
    by_kind: dict[str, list[SearchExample]] = {}
    for example in sorted(examples, key=lambda e: e.cosines[1] - e.cosines[0]):
        by_kind.setdefault(example.kind, []).append(example)
    ordered = []
    for turn in zip_longest(*by_kind.values()):
        ordered += [example for example in turn if example is not None]
    return sorted(ordered, key=lambda e: not e.contradiction_first)


def _notes(chosen: ChosenLanguage, count: int) -> Iterator[str]:
    """Yield notes on the language, unless the texts are English, and on too few sentences."""
    if not chosen.found == chosen.pack.code == ENGLISH.code:
        line = chosen.line(CONTRADICTIONS | REWORDINGS)
        yield f"{line[0].upper()}{line[1:]}."
    if count < LEAST_ROWS:
        yield (
            f"Only {count} sentences could be both contradicted and reworded: the numbers mean "
            "little."
        )
