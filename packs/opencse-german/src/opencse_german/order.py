"""German word order: clauses and times moved, conjuncts exchanged, questions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from opencse.text.english.order import Reordering
from opencse.text.english.parse import Rewrite
from opencse.text.english.questions import Question
from opencse.text.syntax import Token
from opencse_german import words as w
from opencse_german.clause import GermanClause, Phrase, main_clause
from opencse_german.negation import is_temporal

_NOMINATIVE = frozenset(
    "der die das ein eine dieser diese dieses jeder jede jedes alle unser unsere ihr ihre".split()
)
_SUBJECT_PRONOUNS = frozenset("ich er wir man es sie".split())
_UNCLEAR = frozenset("er sie es das dies dieses diese dieser wir ich man ihr".split())
_NAMED = ("definite", "indefinite", "bare")
# Longest question, in words.
_LONGEST = 24
_ASKING = ("Warum", "Wie", "Wann")


class GermanReordering(Reordering):
    """Move a clause or a time to the other side of the main clause, or exchange two nouns."""

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible moves, drawn at random."""
        clause = main_clause(tokens)
        if clause is None or clause.front == "imperative":
            return None, "unclear clause"
        if any(token.text.lower() in w.FOCUS for token in tokens):
            return None, "unclear clause"
        orders = [*_moved(text, clause), *_exchanged(text, clause)]
        if not orders:
            return None, "nothing to move"
        return rng.choice(orders)


class GermanQuestion(Question):
    """Turn a statement into a yes-or-no question, or one with "warum", "wie" or "wann"."""

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Ask one question."""
        clause = main_clause(tokens)
        if clause is None or clause.end != len(tokens) - 1 or clause.front not in _NAMED:
            return None, "unclear clause"
        if clause.word(0) in _UNCLEAR and clause.finite == 1:
            return None, "unclear subject"
        if any(token.text.lower() in w.NEGATIVES for token in tokens):
            return None, "negative words"
        front, finite, rest = _parts(text, clause)
        body = " ".join(part for part in (front, rest) if part)
        if len(body.split()) >= _LONGEST:
            return None, "too long"
        if self.adverbs and rng.random() < self.adverbs:
            return f"{rng.choice(_ASKING)} {finite} {body}?", "why, how or when"
        return f"{finite[0].upper()}{finite[1:]} {body}?", "yes or no"


def _parts(text: str, clause: GermanClause) -> tuple[str, str, str]:
    """Return the text before the finite verb without its capital, the verb, and the rest."""
    tokens = clause.tokens
    finite = clause.finite
    front = _lowered(clause, _text(text, tokens, 0, finite))
    rest = finite + 1
    if clause.phrases and clause.phrases[0].kind == "reflexive":
        # "sich" stays after the verb.
        rest += 1
    return front, _text(text, tokens, finite, rest), _text(text, tokens, rest, clause.end)


def _text(text: str, tokens: Sequence[Token], start: int, end: int) -> str:
    if start >= end:
        return ""
    return text[tokens[start].start : tokens[end - 1].end]


def _lowered(clause: GermanClause, front: str) -> str:
    """Return the beginning of a sentence without its capital, unless it is a noun or "Sie"."""
    word = clause.word(0)
    attribute = w.is_attribute(word) and w.is_noun(clause.tokens[1].text)
    closed = word in w.ORDINARY and clause.tokens[0].text not in ("Sie", "Ihnen")
    if closed or attribute or w.is_number(word):
        return front[0].lower() + front[1:]
    return front


def _raised(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:]


def _is_subject(clause: GermanClause, phrase: Phrase) -> bool:
    """Return whether the phrase after the finite verb can only be the subject."""
    word = clause.word(phrase.start)
    if phrase.kind == "pronoun":
        return word in _SUBJECT_PRONOUNS
    if phrase.kind in ("definite", "indefinite"):
        return word in _NOMINATIVE
    return phrase.kind == "bare"


def _moved(text: str, clause: GermanClause) -> Iterator[Rewrite]:
    """Yield the sentence with its subordinate clause or its time moved."""
    tokens = clause.tokens
    last = len(tokens) - 1
    mark = tokens[last].text
    commas = sum(token.text == "," for token in tokens)
    first = clause.phrases[0] if clause.phrases else None
    opens_with_clause = clause.front == "clause" and commas == 1 and clause.end == last
    if opens_with_clause and first and _is_subject(clause, first):
        subject = _raised(_text(text, tokens, first.start, first.end))
        rest = _text(text, tokens, first.end, clause.end)
        condition = _text(text, tokens, 0, clause.finite - 1)
        condition = condition[0].lower() + condition[1:]
        main = _joined(subject, tokens[clause.finite].text, rest)
        yield f"{main}, {condition}{mark}", "clause to the end"
    if clause.front not in (*_NAMED, "prepositional", "pronoun"):
        return

    front, finite, rest = _parts(text, clause)
    named = clause.front in _NAMED
    if clause.front == "pronoun":
        named = clause.word(0) in ("wir", "sie", "man")
    ends_with_clause = commas == 1 and clause.end < last
    if named and ends_with_clause and clause.word(clause.end + 1) in w.CONDITIONS:
        condition = _raised(_text(text, tokens, clause.end + 1, last))
        yield f"{condition}, {_joined(finite, front, rest)}{mark}", "clause to the front"
    if commas or first is None:
        return

    rest = _text(text, tokens, first.end, clause.end)
    time = _raised(_text(text, tokens, first.start, first.end))
    turned = f"{_joined(time, finite, front, rest)}{mark}"
    if named and first.kind == "prepositional" and is_temporal(tokens, first):
        yield turned, "time to the front"
    before_verb = Phrase("prepositional", 0, clause.finite)
    opens_with_time = clause.front == "prepositional" and is_temporal(tokens, before_verb)
    if opens_with_time and _is_subject(clause, first):
        # Here `time` is the subject, and `front` the time.
        yield turned, "time behind the verb"


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _exchanged(text: str, clause: GermanClause) -> Iterator[Rewrite]:
    """Yield the sentence with two bare nouns around "und" or "oder" exchanged."""
    tokens = clause.tokens
    if any(token.text == "," for token in tokens):
        return
    for i in range(1, len(tokens) - 2):
        if tokens[i].text not in ("und", "oder"):
            continue
        left = tokens[i - 1]
        right = tokens[i + 1]
        before = tokens[i - 2].text.lower() if i > 1 else ""
        after = tokens[i + 2].text
        nouns = w.is_noun(left.text) and w.is_noun(right.text)
        opens = i == 1 or (before in w.PREPOSITIONS and before not in w.CONTRACTED)
        continued = after in w.GENITIVES | w.PREPOSITIONS | w.RELATIVE
        closes = after == "." or (after.islower() and not continued)
        if nouns and opens and closes and left.text.lower() not in w.ORDINARY:
            exchanged = f"{right.text} {tokens[i].text} {left.text}"
            yield f"{text[: left.start]}{exchanged}{text[right.end :]}", "turned"
