"""German opposites: a word replaced by its opposite, negated opposites, and both of the same predicate."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from opencse.text.english.lexicon import LexiconTable
from opencse.text.english.one_word import AntonymSwap
from opencse.text.english.parse import Rewrite
from opencse.text.english.predicates import AntonymQuadruple, NegatedAntonym
from opencse.text.syntax import Edit, Token, apply_edits, match_case
from opencse_german import lexicon
from opencse_german import words as w
from opencse_german.clause import GermanClause, main_clause
from opencse_german.lexicon import OPPOSITES, Opposed
from opencse_german.negation import is_time, negation_edits

_TABLES: tuple[LexiconTable, ...] = (OPPOSITES,)
_WORDS_AFTER = {"mehr": ("als",), "weniger": ("als",)}
"""Words of which one must follow a word so that it has its opposite."""
_POSSIBLE = frozenset("kann können konnte konnten darf dürfen durfte durften".split())
"""Modals of what is possible or permitted: its opposite can be possible as well."""
_NO_OPPOSITE_BEFORE = frozenset(
    "allem dem der die das ein sich wie so noch wieder nur mehr zu".split()
)
"""Behind "vor", "mit", "immer" these begin another meaning: "vor allem", "immer noch"."""


class GermanAntonymSwap(AntonymSwap):
    """Replace one word by its opposite: the predicate, an attribute, a verb, a separated prefix or a preposition."""

    tables = _TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Replace one word."""
        if any(
            token.text.lower() in (w.NEGATIVES | w.VAGUE) - {"ohne", "selten", "nie"}
            for token in tokens
        ):
            return None, "negative words"
        predicates = [
            (edits, "antonym predicate") for edits, *_ in _predicates(main_clause(tokens))
        ]
        others = list(_words(tokens))
        opposites = predicates if predicates and self.predicate_first else [*predicates, *others]
        if not opposites:
            return None, "no antonym"
        edits, rule = rng.choice(opposites)
        return apply_edits(text, edits), rule


class GermanNegatedAntonym(NegatedAntonym):
    """Negate the opposite of the predicate: "ist sicher" becomes "ist nicht unsicher"."""

    tables = _TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate the opposite of the predicate of one sentence."""
        return _quadruple(text, tokens)[0]


class GermanAntonymQuadruple(AntonymQuadruple):
    """Build a paraphrase and two contradictions of the predicate."""

    tables = _TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return the paraphrase, the negation and the antonym of a sentence."""
        return _quadruple(text, tokens)


def opposed_words(text: str) -> dict[str, str]:
    """Return the opposites of the predicates and attributes that a text may have, by their base form."""
    words: dict[str, str] = {}
    for word in text.replace(".", " ").replace(",", " ").split():
        entry = lexicon.adjectives().get(word) or lexicon.attributes().get(word)
        if entry is not None:
            words[entry.base[0]] = entry.base[1]
    return words


def _quadruple(text: str, tokens: Sequence[Token]) -> list[Rewrite]:
    none: list[Rewrite] = [(None, "no antonym")] * 3
    turned, rule = negation_edits(tokens)
    if turned is None:
        return [(None, rule)] * 3
    for swap, entry, clause in _predicates(_without_negation(tokens)):
        if any(a < end and start < b for a, b, _ in turned for start, end, _ in swap):
            continue
        paraphrase: Rewrite = (apply_edits(text, [*turned, *swap]), "negated antonym")
        if not entry.complementary or not _states(clause):
            paraphrase = None, "third possibility"
        return [paraphrase, (apply_edits(text, turned), rule), (apply_edits(text, swap), "antonym")]
    return none


def _without_negation(tokens: Sequence[Token]) -> GermanClause | None:
    """Return the main clause, found without the only "nicht"."""
    return main_clause([token for token in tokens if token.text != "nicht"])


def _states(clause: GermanClause) -> bool:
    """Whether the predicate says how something is: no modal, no degree, nothing that limits it."""
    finite = clause.word(clause.finite)
    degree = clause.edge < clause.end - 1
    manner = any(phrase.kind == "manner" for phrase in clause.phrases)
    return finite in w.COPULAS | w.WERDEN and not degree and not manner


def _predicates(clause: GermanClause | None) -> Iterator[tuple[list[Edit], Opposed, GermanClause]]:
    """Yield the edit that turns the predicate of a clause into its opposite."""
    if clause is None or clause.predicate is None:
        return
    token = clause.tokens[clause.predicate]
    finite = clause.word(clause.finite)
    single = clause.edge == clause.predicate or all(
        clause.tokens[i].text in w.DEGREE for i in range(clause.edge, clause.predicate)
    )
    entry = lexicon.adjectives().get(token.text) if finite in w.COPULAS | w.WERDEN else None
    entry = entry or (
        lexicon.verbs().get(token.text) if finite in w.AUXILIARIES - _POSSIBLE else None
    )
    if entry is None or not single or not _fits(clause, entry):
        return
    yield [(token.start, token.end, entry.opposite)], entry, clause


def _fits(clause: GermanClause, entry: Opposed) -> bool:
    """Whether the opposite fits the phrases of the clause: nothing is "auf eine Stunde unbegrenzt"."""
    becomes = clause.word(clause.finite) in w.WERDEN  # "wird unverschlüsselt" says nothing
    if becomes and entry.opposite.startswith("un") and w.is_participle(entry.opposite[2:]):
        return False
    first = [(phrase, clause.word(phrase.start)) for phrase in clause.phrases]
    return not any(
        word == "auf"
        or (phrase.kind in ("indefinite", "counted") and is_time(clause.tokens, phrase))
        for phrase, word in first
    )


def _words(tokens: Sequence[Token]) -> Iterator[tuple[list[Edit], str]]:
    """Yield the edits that turn an attribute, a preposition, an adverb or a separated prefix into its opposite."""
    clause = main_clause(tokens)
    for i, token in enumerate(tokens[:-1]):
        later = tokens[i + 1].text
        entry = lexicon.attributes().get(token.text)
        if entry is not None and i and w.is_noun(later):
            yield [(token.start, token.end, entry.opposite)], "antonym attribute"
        opposite = lexicon.function_words().get(token.text.lower())
        if opposite is not None and _has_opposite(tokens, i):
            yield [(token.start, token.end, match_case(opposite, token.text))], "antonym word"
    if clause is None:
        return
    finite, last = clause.tokens[clause.finite], clause.tokens[clause.end - 1]
    other = lexicon.particles().get((finite.text.lower(), last.text))
    if other is not None:
        yield [(last.start, last.end, other)], "antonym prefix"
    elif (
        clause.edge == clause.end
        and finite.text in lexicon.verbs()
        and clause.front != "imperative"
    ):
        yield [(finite.start, finite.end, lexicon.verbs()[finite.text].opposite)], "antonym verb"


def _has_opposite(tokens: Sequence[Token], i: int) -> bool:
    word, later = tokens[i].text.lower(), tokens[i + 1].text.lower()
    if word in _WORDS_AFTER:
        return later in _WORDS_AFTER[word] and not (
            i and tokens[i - 1].text.lower() in ("nicht", "immer", "noch")
        )
    if word in (
        "mit",
        "ohne",
    ):  # "mit" takes the dative and "ohne" the accusative: only without an article
        return w.is_noun(tokens[i + 1].text) and tokens[-2].text != word
    if word in ("vor", "nach"):  # both take the dative of time
        return later in ("dem", "der", "jeder", "jedem") and any(
            w.TIME_NOUNS.fullmatch(t.text) for t in tokens[i + 2 : i + 4]
        )
    if word in ("über", "unter", "innerhalb", "außerhalb", "oberhalb", "unterhalb"):
        return later in ("der", "des") if word not in ("über", "unter") else w.is_number(later)
    if word in ("mindestens", "höchstens"):
        return w.is_number(later)
    return (
        i > 0
        and later not in _NO_OPPOSITE_BEFORE
        and tokens[i - 1].text.lower() not in _NO_OPPOSITE_BEFORE
    )
