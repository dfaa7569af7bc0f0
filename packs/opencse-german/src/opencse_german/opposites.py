"""German opposites: a word replaced by its opposite, negated opposites, and both together."""

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
"""One of these words must follow the word, or it has no opposite."""
_POSSIBLE = frozenset("kann können konnte konnten darf dürfen durfte durften".split())
"""Modals of what is possible or permitted; the opposite can be possible as well."""
_NO_OPPOSITE_BEFORE = frozenset(
    "allem dem der die das ein sich wie so noch wieder nur mehr zu".split()
)
"""After "vor", "mit", "immer" these begin another meaning: "vor allem", "immer noch"."""


class GermanAntonymSwap(AntonymSwap):
    """Replace one word by its opposite.

    It is the predicate, an attribute, a verb, a separated prefix or a preposition.
    """

    tables = _TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Replace one word."""
        unclear = (w.NEGATIVES | w.VAGUE) - {"ohne", "selten", "nie"}
        if any(token.text.lower() in unclear for token in tokens):
            return None, "negative words"
        opposites = []
        for edits, _, _ in _predicates(main_clause(tokens)):
            opposites.append((edits, "antonym predicate"))
        if not opposites or not self.predicate_first:
            opposites += _words(tokens)
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
    """Return the opposites of a text's possible predicates and attributes, by their base form."""
    words: dict[str, str] = {}
    for word in text.replace(".", " ").replace(",", " ").split():
        entry = lexicon.adjectives().get(word) or lexicon.attributes().get(word)
        if entry is not None:
            words[entry.base[0]] = entry.base[1]
    return words


def _quadruple(text: str, tokens: Sequence[Token]) -> list[Rewrite]:
    """Return the paraphrase, the negation and the antonym of a sentence."""
    turned, rule = negation_edits(tokens)
    if turned is None:
        return [(None, rule)] * 3
    for swap, entry, clause in _predicates(_without_negation(tokens)):
        if _overlap(turned, swap):
            continue
        paraphrase: Rewrite = (None, "third possibility")
        if entry.complementary and _states(clause):
            paraphrase = (apply_edits(text, [*turned, *swap]), "negated antonym")
        negation: Rewrite = (apply_edits(text, turned), rule)
        antonym: Rewrite = (apply_edits(text, swap), "antonym")
        return [paraphrase, negation, antonym]
    return [(None, "no antonym")] * 3


def _overlap(first: Sequence[Edit], second: Sequence[Edit]) -> bool:
    for start, end, _ in first:
        for other_start, other_end, _ in second:
            if start < other_end and other_start < end:
                return True
    return False


def _without_negation(tokens: Sequence[Token]) -> GermanClause | None:
    """Return the main clause, found without the only "nicht"."""
    return main_clause([token for token in tokens if token.text != "nicht"])


def _states(clause: GermanClause) -> bool:
    """Return whether the predicate is unlimited: no modal, no degree, no adverb of manner."""
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
    words_before = clause.tokens[clause.edge : clause.predicate]
    if not all(word.text in w.DEGREE for word in words_before):
        return
    entry = None
    if finite in w.COPULAS | w.WERDEN:
        entry = lexicon.adjectives().get(token.text)
    if entry is None and finite in w.AUXILIARIES - _POSSIBLE:
        entry = lexicon.verbs().get(token.text)
    if entry is not None and _fits(clause, entry):
        yield [(token.start, token.end, entry.opposite)], entry, clause


def _fits(clause: GermanClause, entry: Opposed) -> bool:
    """Return whether the opposite fits the phrases: nothing is "auf eine Stunde unbegrenzt"."""
    becomes = clause.word(clause.finite) in w.WERDEN
    if becomes and entry.opposite.startswith("un") and w.is_participle(entry.opposite[2:]):
        # "wird unverschlüsselt" means nothing.
        return False
    for phrase in clause.phrases:
        if clause.word(phrase.start) == "auf":
            return False
        if phrase.kind in ("indefinite", "counted") and is_time(clause.tokens, phrase):
            return False
    return True


def _words(tokens: Sequence[Token]) -> Iterator[tuple[list[Edit], str]]:
    """Yield the edits that turn another word into its opposite.

    It is an attribute, a preposition, an adverb, a separated prefix or the main verb.
    """
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
    finite = clause.tokens[clause.finite]
    last = clause.tokens[clause.end - 1]
    prefix = lexicon.particles().get((finite.text.lower(), last.text))
    verb = lexicon.verbs().get(finite.text)
    if prefix is not None:
        yield [(last.start, last.end, prefix)], "antonym prefix"
    elif verb is not None and clause.edge == clause.end and clause.front != "imperative":
        yield [(finite.start, finite.end, verb.opposite)], "antonym verb"


def _has_opposite(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a function word has its usual meaning, and so its opposite."""
    word = tokens[i].text.lower()
    before = tokens[i - 1].text.lower() if i else ""
    later = tokens[i + 1].text.lower()
    if word in _WORDS_AFTER:
        return later in _WORDS_AFTER[word] and before not in ("nicht", "immer", "noch")
    if word in ("mit", "ohne"):
        # "mit" takes the dative and "ohne" the accusative: only without an article.
        return w.is_noun(tokens[i + 1].text) and tokens[-2].text != word
    if word in ("vor", "nach"):
        # Both take the dative of time.
        has_time = any(w.TIME_NOUNS.fullmatch(token.text) for token in tokens[i + 2 : i + 4])
        return later in ("dem", "der", "jeder", "jedem") and has_time
    if word in ("über", "unter", "mindestens", "höchstens"):
        return w.is_number(later)
    if word in ("innerhalb", "außerhalb", "oberhalb", "unterhalb"):
        return later in ("der", "des")
    return i > 0 and later not in _NO_OPPOSITE_BEFORE and before not in _NO_OPPOSITE_BEFORE
