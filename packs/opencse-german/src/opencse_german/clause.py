"""The main clause of a German statement: the finite verb, and the phrases before and after it.

German puts the finite verb of a main clause into second place, after exactly one phrase, and the
rest of the verb at the end. So closed classes of words and the capitals of nouns are enough to
divide most plain statements. A sentence with a word that fits nowhere has no clause here, and no
rule rewrites it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opencse.text.syntax import Token
from opencse_german import words as w
from opencse_german.lexicon import adjectives

Kind = Literal[
    "definite",
    "indefinite",
    "bare",
    "counted",
    "prepositional",
    "pronoun",
    "reflexive",
    "adverb",
    "manner",
]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a clause.

    Attributes:
        kind: A noun phrase by its determiner (`counted`: by its number), or another phrase.
        start: Its first token.
        end: The token after its last.
    """

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GermanClause:
    """The main clause of a statement.

    Attributes:
        tokens: The tokens of the sentence.
        front: Kind of what stands before the finite verb; "clause" for a subordinate clause,
            "imperative" for nothing.
        finite: The finite verb.
        phrases: The phrases after it, up to `edge`.
        edge: First token of the verb cluster or of the predicate adjective, with its degree
            adverbs; `end` if there is neither.
        end: The token after the clause: its final mark, or the comma before a subordinate clause.
    """

    tokens: Sequence[Token]
    front: str
    finite: int
    phrases: tuple[Phrase, ...]
    edge: int
    end: int

    def word(self, i: int) -> str:
        """Return a token in small letters."""
        return self.tokens[i].text.lower()

    @property
    def auxiliary(self) -> bool:
        """Return whether the finite verb is a copula, an auxiliary or a modal."""
        return self.word(self.finite) in w.AUXILIARIES

    @property
    def predicate(self) -> int | None:
        """The token of the predicate adjective or of the only participle; None if there is none."""
        if self.edge == self.end:
            return None
        return self.end - 1


def main_clause(tokens: Sequence[Token]) -> GermanClause | None:
    """Return the main clause of a plain statement; None if a word of the sentence fits nowhere."""
    last = len(tokens) - 1
    if last < 2 or tokens[last].text not in (".", "!"):
        return None
    if any(token.text in ';:?!…"“”„»«()[]–—-' for token in tokens[:last]):
        return None
    opening = _front(tokens)
    if opening is None:
        return None
    front, finite = opening
    end = next((i for i in range(finite + 1, last) if tokens[i].text == ","), last)
    if end < last and not _subordinate(tokens, end, last):
        return None
    start = finite + 1
    if front == "imperative":
        # "Sie" follows the verb.
        start += 1
    edge = _edge(tokens, finite, start, end)
    if edge is None:
        return None
    phrases = _phrases(tokens, start, edge)
    if phrases is None:
        return None
    return GermanClause(tokens, front, finite, phrases, edge, end)


def _front(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """Return the kind of phrase before the finite verb, and the finite verb."""
    first = tokens[0].text.lower()
    if first in w.CONDITIONS and tokens[1].text != ",":
        comma = next((i for i, t in enumerate(tokens) if t.text == ","), None)
        if comma is None or not tokens[comma - 1].text.islower():
            return None
        if not _is_finite(tokens, comma + 1):
            return None
        return "clause", comma + 1
    if tokens[1].text == "Sie" and w.is_infinitive(first) and tokens[0].text.istitle():
        return "imperative", 0
    if tokens[0].text == "Bitte" and tokens[1].text.islower() and tokens[2].text == "Sie":
        return None
    phrase = next_phrase(tokens, 0, len(tokens) - 1)
    if phrase is None or phrase.kind in ("reflexive", "manner"):
        return None
    if not _is_finite(tokens, phrase.end):
        return None
    return phrase.kind, phrase.end


def _is_finite(tokens: Sequence[Token], i: int) -> bool:
    word = tokens[i].text
    if tokens[i].tag:
        # A full pipeline, with the tags of the Stuttgart-Tübingen tag set.
        return tokens[i].tag.endswith("FIN")
    return word.islower() and (word in w.AUXILIARIES or w.is_full_verb(word))


def _subordinate(tokens: Sequence[Token], comma: int, last: int) -> bool:
    """Return whether a comma begins a subordinate clause or another main clause, and not a list."""
    word = tokens[comma + 1].text.lower()
    if word in w.CONNECTORS:
        return word != "sondern"
    relative = word in w.RELATIVE
    if word in w.PREPOSITIONS:
        # ", mit dem …"
        relative = relative or tokens[comma + 2].text.lower() in w.RELATIVE
    return relative and tokens[last - 1].text.islower()


def _edge(tokens: Sequence[Token], finite: int, start: int, end: int) -> int | None:
    """Return the first token of the verb cluster or of the predicate adjective.

    It is `end` if the clause has neither, and None if an auxiliary lacks both.
    """
    verb = tokens[finite].text.lower()
    last = end - 1
    word = tokens[last].text
    names_thing = w.is_noun(word) or w.is_number(word)
    if last < start:
        return end if verb not in w.AUXILIARIES else None
    if verb in w.COPULAS | w.WERDEN and is_predicate(tokens, last):
        edge = last
        while edge > start and tokens[edge - 1].text in w.DEGREE:
            edge -= 1
        coordinated = tokens[edge - 1].text.lower() in ("und", "oder", "als", "wie")
        return None if coordinated else edge
    if verb in w.AUXILIARIES:
        edge = last
        while edge > start and tokens[edge].text in w.NON_FINITE:
            if not tokens[edge - 1].text.islower():
                break
            edge -= 1
        form = tokens[edge].text
        infinitive = verb in w.MODALS | w.WERDEN and w.is_infinitive(form)
        if form.islower() and (infinitive or w.is_participle(form)):
            coordinated = tokens[edge - 1].text in ("und", "oder", "zu")
            return None if coordinated else edge
        # "ist der Administrator", "hat drei Räder"
        return end if verb in w.COPULAS | w.HABEN and names_thing else None
    if word in w.PARTICLES:
        return last
    return end if names_thing or _closes(word) else None


def is_predicate(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a token looks like a predicate adjective, or a participle that can be one."""
    word = tokens[i].text
    if not word.islower():
        return False
    return word in adjectives() or w.is_predicate_form(word) or w.is_participle(word)


def _closes(word: str) -> bool:
    """Return whether a clause may end in a word that is no noun and no verb."""
    if word in w.SENTENCE_ADVERBS or word in w.MANNER_ADVERBS:
        return True
    return word == w.REFLEXIVE or word in w.PRONOUNS


def _phrases(tokens: Sequence[Token], start: int, edge: int) -> tuple[Phrase, ...] | None:
    """Divide the tokens in [start, edge) into phrases; None if a word fits nowhere."""
    phrases: list[Phrase] = []
    while start < edge:
        phrase = next_phrase(tokens, start, edge)
        if phrase is None:
            return None
        phrases.append(phrase)
        start = phrase.end
    return tuple(phrases)


def next_phrase(tokens: Sequence[Token], start: int, end: int) -> Phrase | None:
    """Return the longest phrase that begins at a token and ends before `end`, if there is one."""
    word = tokens[start].text if start else tokens[start].text.lower()
    later = tokens[start + 1].text if start + 1 < len(tokens) else ""
    if word == w.REFLEXIVE:
        return Phrase("reflexive", start, start + 1)
    determiner = word.lower() in w.DETERMINERS
    if word.lower() in w.PRONOUNS and not (determiner and _opens_nominal(later)):
        return Phrase("pronoun", start, start + 1)
    if word in w.PREPOSITIONS:
        return _prepositional(tokens, start, end)
    if word in w.SENTENCE_ADVERBS or word in w.FREQUENCY:
        return Phrase("adverb", start, start + 1)
    if word in w.MANNER_ADVERBS and not w.is_noun(later):
        return Phrase("manner", start, start + 1)
    stop = _nominal(tokens, start, end)
    if stop is None:
        return None
    kind: Kind = "bare"
    if word.lower() in w.DETERMINERS:
        kind = "definite"
    elif word.lower() in w.INDEFINITE:
        kind = "indefinite"
    elif w.is_number(tokens[start].text):
        kind = "counted"
    return Phrase(kind, start, stop)


def _opens_nominal(word: str) -> bool:
    return w.is_noun(word) or w.is_attribute(word) or w.is_number(word) or word in w.DEGREE


def _prepositional(tokens: Sequence[Token], start: int, end: int) -> Phrase | None:
    """Return a prepositional phrase: "nach dem Ende des Vertrags", "mit ihm"."""
    i = start + 1
    if i < end and tokens[i].text in w.PREPOSITIONS and tokens[i].text not in w.CONTRACTED:
        i += 1
    stop = _nominal(tokens, i, end)
    if stop is None and i < end and tokens[i].text.lower() in w.PRONOUNS | {w.REFLEXIVE}:
        stop = i + 1
    if stop is None:
        return None
    return Phrase("prepositional", start, stop)


def _nominal(tokens: Sequence[Token], start: int, end: int) -> int | None:
    """Return the end of a noun phrase with its genitives and coordinated nouns, if there is one."""
    i = start
    while i < end and tokens[i].text.lower() in w.DETERMINERS | w.INDEFINITE and i < start + 2:
        i += 1
    i = _attributes(tokens, i, end)
    counted = i > start and w.is_number(tokens[i - 1].text)
    if i >= end or not (w.is_noun(tokens[i].text) or (counted and tokens[i].text in w.UNITS)):
        return i if counted else None
    i += 1
    while i < end and (w.is_noun(tokens[i].text) or w.is_number(tokens[i].text)):
        # "Herr Müller", "Version 3"
        i += 1
    if i + 1 < end and tokens[i].text in w.GENITIVES:
        i = _nominal(tokens, i, end) or i
    if i + 1 < end and tokens[i].text in w.COORDINATORS:
        # A coordinator that joins no nouns leaves the sentence unclear.
        return _nominal(tokens, i + 1, end)
    return i


def _attributes(tokens: Sequence[Token], i: int, end: int) -> int:
    """Return the first token after the numbers, degree adverbs and adjectives before a noun."""
    while i < end:
        word = tokens[i].text if i else tokens[i].text.lower()
        later = tokens[i + 1].text if i + 1 < end else ""
        if w.is_number(word):
            i += 1
        elif i == 0:
            # "Kunden erhalten …" opens with a noun.
            if not (w.is_attribute(word) and w.is_noun(later)):
                break
            i += 1
        elif word in w.DEGREE and w.is_attribute(later):
            i += 1
        elif not w.is_attribute(word):
            break
        elif _opens_nominal(later):
            i += 1
        elif later in ("und", "oder") and i + 2 < end and w.is_attribute(tokens[i + 2].text):
            # "neue und alte Kunden"
            i += 2
        else:
            break
    return i
