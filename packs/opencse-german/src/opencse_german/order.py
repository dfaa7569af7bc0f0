"""German word order: subordinate clauses and times before or behind their clause, conjuncts exchanged, questions."""

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
_LONGEST = 24  # words of a question
_ASKING = ("Warum", "Wie", "Wann")


class GermanReordering(Reordering):
    """Move a subordinate clause or a time to the other side of the main clause, or exchange two nouns."""

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible moves, drawn at random."""
        clause = main_clause(tokens)
        if (
            clause is None
            or clause.front == "imperative"
            or any(t.text.lower() in w.FOCUS for t in tokens)
        ):
            return None, "unclear clause"
        orders = [*_moved(text, clause), *_exchanged(text, clause)]
        return rng.choice(orders) if orders else (None, "nothing to move")


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
    """Return what stands before the finite verb without its capital, the verb, and the rest of the clause."""
    tokens, finite = clause.tokens, clause.finite
    front = _lowered(clause, _text(text, tokens, 0, finite))
    rest = finite + 1
    if clause.phrases and clause.phrases[0].kind == "reflexive":  # "sich" stays behind the verb
        rest += 1
    return front, _text(text, tokens, finite, rest), _text(text, tokens, rest, clause.end)


def _text(text: str, tokens: Sequence[Token], start: int, end: int) -> str:
    return text[tokens[start].start : tokens[end - 1].end] if start < end else ""


def _lowered(clause: GermanClause, front: str) -> str:
    """Return the beginning of a sentence without its capital, unless it is a noun or "Sie"."""
    word = clause.word(0)
    attribute = w.is_attribute(word) and w.is_noun(clause.tokens[1].text)
    closed = word in w.ORDINARY and clause.tokens[0].text not in ("Sie", "Ihnen")
    return front[0].lower() + front[1:] if closed or attribute or w.is_number(word) else front


def _raised(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:]


def _is_subject(clause: GermanClause, phrase: Phrase) -> bool:
    """Whether the phrase behind the finite verb can only be the subject."""
    word = clause.word(phrase.start)
    if phrase.kind == "pronoun":
        return word in _SUBJECT_PRONOUNS
    return phrase.kind == "bare" or (
        phrase.kind in ("definite", "indefinite") and word in _NOMINATIVE
    )


def _moved(text: str, clause: GermanClause) -> Iterator[Rewrite]:
    tokens, last = clause.tokens, len(clause.tokens) - 1
    commas = sum(token.text == "," for token in tokens)
    mark = tokens[last].text
    first = clause.phrases[0] if clause.phrases else None
    if (
        clause.front == "clause"
        and commas == 1
        and clause.end == last
        and first
        and _is_subject(clause, first)
    ):
        subject = _raised(_text(text, tokens, first.start, first.end))
        rest = _text(text, tokens, first.end, clause.end)
        condition = _text(text, tokens, 0, clause.finite - 1)
        condition = condition[0].lower() + condition[1:]
        main = " ".join(part for part in (subject, tokens[clause.finite].text, rest) if part)
        yield f"{main}, {condition}{mark}", "clause to the end"
    if clause.front not in (*_NAMED, "prepositional", "pronoun"):
        return
    front, finite, rest = _parts(text, clause)
    named = clause.front in _NAMED or (
        clause.front == "pronoun" and clause.word(0) in ("wir", "sie", "man")
    )
    if named and commas == 1 and clause.end < last and clause.word(clause.end + 1) in w.CONDITIONS:
        condition = _raised(_text(text, tokens, clause.end + 1, last))
        yield (
            f"{condition}, {finite} {front}{' ' + rest if rest else ''}{mark}",
            "clause to the front",
        )
    if commas or first is None:
        return
    rest = _text(text, tokens, first.end, clause.end)
    time = _text(text, tokens, first.start, first.end)
    if named and first.kind == "prepositional" and is_temporal(tokens, first):
        yield (
            f"{_raised(time)} {finite} {front}{' ' + rest if rest else ''}{mark}",
            "time to the front",
        )
    whole = Phrase("prepositional", 0, clause.finite)
    if (
        clause.front == "prepositional"
        and is_temporal(tokens, whole)
        and _is_subject(clause, first)
    ):
        yield (
            f"{_raised(time)} {finite} {front}{' ' + rest if rest else ''}{mark}",
            "time behind the verb",
        )


def _exchanged(text: str, clause: GermanClause) -> Iterator[Rewrite]:
    """Yield the sentence with two bare nouns around "und" or "oder" exchanged."""
    tokens = clause.tokens
    for i in range(1, len(tokens) - 2):
        if tokens[i].text not in ("und", "oder") or any(t.text == "," for t in tokens):
            continue
        left, right, after = tokens[i - 1], tokens[i + 1], tokens[i + 2].text
        before = tokens[i - 2].text.lower() if i > 1 else ""
        opens = i == 1 or (before in w.PREPOSITIONS and before not in w.CONTRACTED)
        closes = after == "." or (
            after.islower() and after not in w.GENITIVES | w.PREPOSITIONS | w.RELATIVE
        )
        if (
            opens
            and closes
            and w.is_noun(left.text)
            and w.is_noun(right.text)
            and left.text.lower() not in w.ORDINARY
        ):
            yield (
                f"{text[: left.start]}{right.text} {tokens[i].text} {left.text}{text[right.end :]}",
                "turned",
            )
