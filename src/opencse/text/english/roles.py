"""Patterns in which two phrases have different roles, each with a paraphrase and with the roles exchanged.

| pattern | sentence | same roles | roles exchanged |
|---|---|---|---|
| comparison | Anna is taller than Ben. | Ben is shorter than Anna. | Ben is taller than Anna. |
| order | She slept before she ate. | Before she ate, she slept. | She ate before she slept. |
| direction | They flew from Rome to Oslo. | They flew to Oslo from Rome. | They flew from Oslo to Rome. |
| recipient | Anna sent Ben a card. | Anna sent a card to Ben. | Ben sent Anna a card. |
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english import lexicon
from opencse.text.english.clause import BE
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, SYMMETRIC_VERBS, LexiconTable, word_class
from opencse.text.english.phrases import Span, as_span, noun_phrase, subtree, text_of
from opencse.text.english.transitive import (
    Transitive,
    agreeing,
    can_act,
    characters,
    is_plural,
    other_voice,
    phrase_as,
    shares_subject,
    transitives,
    verb_base,
)
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits, decapitalise

RolePair = tuple[str | None, str, str]
"""The paraphrase (None if there is none), the sentence with exchanged roles, and the name of the pattern."""

_GIVING = word_class("giving")
_CONVERSE = {"before": "after", "after": "before"}
_ORDERS = ("before", "after", "because", "until")
_RANGES = frozenset("range vary extend date last run stretch span increase rise fall grow drop decline change".split())
_END = (".", "!")
_SHORT = 5  # tokens of a recipient that stands before the object


def role_pairs(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Yield each pattern that a statement has.

    Args:
        text: The sentence.
        tokens: Its tokens.
    """
    if any(token.text in (".", "?", ";") for token in tokens[:-1]) or text.rstrip().endswith("?"):
        return
    for pattern in (_comparison, _order, _direction, _recipient):
        yield from pattern(text, tokens)


def _children(tokens: Sequence[Token], head: int, *relations: str) -> list[int]:
    return [i for i, t in enumerate(tokens) if t.head == head != i and t.relation.split(":")[0] in relations]


def _exchange(text: str, tokens: Sequence[Token], subject: Span, other: Span) -> list[Edit]:
    """Return the edits that exchange a subject and another phrase, with the case of pronouns."""
    return [
        (*characters(tokens, subject), phrase_as(text, tokens, other, subject=True, place=subject)),
        (*characters(tokens, other), phrase_as(text, tokens, subject, subject=False, place=other)),
    ]


def _phrase(tokens: Sequence[Token], head: int, *, without: Sequence[int] = ()) -> Span | None:
    """Return a noun phrase with its "of" phrases; None if it is no span, has clauses or refers back."""
    places = subtree(tokens, head) - {k for i in without for k in subtree(tokens, i)}
    span = as_span(places)
    barred = ("acl", "advcl", "conj", "parataxis", "appos", "mark", "punct", "ccomp")
    if span is None or any(tokens[i].relation.split(":")[0] in barred for i in places - {head}):
        return None
    if tokens[head].pos not in ("NOUN", "PROPN", "PRON") or tokens[head].tag in ("EX", "WP", "WDT", "DT"):
        return None
    return None if any(tokens[i].tag in ("PRP$", "VBZ", "VBD", "VBP", "MD") for i in places) else span


def _comparison(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange what is compared: "Anna is taller than Ben"; a comparative of the opposite keeps the meaning."""
    for i, token in enumerate(tokens):
        if token.tag not in ("JJR", "JJ") or not _children(tokens, i, "cop"):
            continue
        subjects, compared = _children(tokens, i, "nsubj"), _children(tokens, i, "obl")
        compared = [k for k in compared if any(tokens[c].text.lower() == "than" for c in _children(tokens, k, "case"))]
        degrees = [k for k in _children(tokens, i, "advmod") if tokens[k].text.lower() in ("more", "less")]
        if len(subjects) != 1 or len(compared) != 1 or (token.tag == "JJ" and len(degrees) != 1):
            continue
        than = next(c for c in _children(tokens, compared[0], "case") if tokens[c].text.lower() == "than")
        subject, other = _phrase(tokens, subjects[0]), _phrase(tokens, compared[0], without=[than])
        copula = _children(tokens, i, "cop")[0]
        if subject is None or other is None or not subject[1] < copula < i < other[0]:
            continue
        if tokens[other[0]].tag == "IN" or "conj" in {t.relation for t in tokens if t.head == i}:
            continue
        edits = _exchange(text, tokens, subject, other)
        plural = is_plural(tokens, compared[0], other)
        if plural is None or tokens[copula].text.lower() not in BE or tokens[copula].text.startswith(("'", "’")):
            continue
        verb = agreeing(tokens[copula].text, plural)
        edits.append((tokens[copula].start, tokens[copula].end, verb))
        if degrees:
            degree = tokens[degrees[0]]
            word, new = degree, {"more": "less", "less": "more"}[degree.text.lower()]
        else:
            word, new = token, lexicon.opposites().get((token.text.lower(), "ADJ"), "")
        kept = apply_edits(text, [*edits, (word.start, word.end, new)]) if new else None
        yield kept, apply_edits(text, edits), "comparison"


def _order(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange two clauses: "A before B" becomes "B before A"; "Before B, A" keeps the meaning."""
    if tokens[-1].text not in _END:
        return
    last = len(tokens) - 2
    for i, token in enumerate(tokens):
        marks = _children(tokens, i, "mark")
        if token.relation != "advcl" or len(marks) != 1 or tokens[marks[0]].text.lower() not in _ORDERS:
            continue
        if not _children(tokens, i, "nsubj") or not _children(tokens, token.head, "nsubj") or token.head > last:
            continue
        places = subtree(tokens, i)
        places = {k for k in places if k <= last and not (tokens[k].text == "," and k in (min(places), max(places)))}
        span, mark = as_span(places), marks[0]
        if span is None or span[0] != mark or tokens[tokens[i].head].head != tokens[i].head:
            continue
        fronted = mark == 0
        if fronted and tokens[min(span[1] + 1, last)].text == ",":
            main = (span[1] + 2, last)
        elif not fronted and span[1] == last and tokens[mark - 1].text not in (",", "and", "or", "even", "not", "just"):
            main = (0, mark - 1)
        else:
            continue
        opening = tokens[main[0]].tag == "RB" and tokens[main[0] + 1].text == ","  # "Furthermore, he left"
        shifted = not fronted and tokens[mark - 1].tag in ("RB", "NNS", "CC")  # "shortly after", "two days before"
        if (
            main[1] <= main[0]
            or opening
            or shifted
            or any(tokens[k].text in ('"', "“", "”", "(", ":") for k in range(last + 1))
        ):
            continue
        clauses = [_uncapitalised(text, tokens, main), _uncapitalised(text, tokens, (mark + 1, span[1]))]
        word, end = tokens[mark].text.lower(), text[tokens[last].end :]
        yield (
            _joined(clauses, word, end, fronted=not fronted),
            _joined(clauses[::-1], word, end, fronted=fronted),
            "order",
        )


def _uncapitalised(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return a clause as it reads in the middle of a sentence."""
    piece, first = text_of(text, tokens, span), tokens[span[0]]
    return piece if span[0] or first.pos == "PROPN" or first.text == "I" else decapitalise(piece)


def _joined(clauses: Sequence[str], word: str, end: str, *, fronted: bool) -> str:
    """Return a sentence of a main and another clause: "Before OTHER, MAIN." or "MAIN before OTHER."."""
    main, other = clauses
    sentence = f"{word} {other}, {main}{end}" if fronted else f"{main} {word} {other}{end}"
    return sentence[:1].upper() + sentence[1:]


def _direction(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange where something starts and where it ends: "from A to B" becomes "from B to A"."""
    for i, token in enumerate(tokens[:-1]):
        if token.text != "from" or token.relation != "case" or tokens[tokens[token.head].head].lemma.lower() in _RANGES:
            continue
        start = noun_phrase(tokens, token.head)
        to = start[1] + 1 if start is not None else 0
        if start is None or start[0] != i + 1 or to >= len(tokens) or tokens[to].text != "to":
            continue
        head = tokens[to].head
        end = noun_phrase(tokens, head) if tokens[to].relation == "case" else None
        if end is None or end[0] != to + 1 or any(tokens[k].head == head and k > end[1] for k in range(len(tokens))):
            continue
        heads = (tokens[token.head], tokens[head])
        if any(t.tag in ("CD", "PRP", "NNS") or t.lemma.lower() == heads[0].lemma.lower() for t in heads[1:]):
            continue
        if any(t.tag not in ("NNP", "NN") for t in heads) or (heads[0].tag != heads[1].tag):
            continue
        pieces = text_of(text, tokens, start), text_of(text, tokens, end)
        place = (token.start, tokens[end[1]].end)
        yield (
            apply_edits(text, [(*place, f"to {pieces[1]} from {pieces[0]}")]),
            apply_edits(text, [(*place, f"from {pieces[1]} to {pieces[0]}")]),
            "direction",
        )


def _recipient(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange giver and recipient: "Anna sent Ben a card", where "sent a card to Ben" keeps the meaning."""
    for i, verb in enumerate(tokens):
        if not verb.tag.startswith("VB") or verb.lemma.lower() not in _GIVING:
            continue
        givers, objects = _children(tokens, i, "nsubj"), _children(tokens, i, "obj")
        indirect = _children(tokens, i, "iobj")
        if len(givers) != 1 or len(objects) != 1 or len(indirect) != 1 or tokens[givers[0]].relation != "nsubj":
            continue
        giver, recipient, thing = (_phrase(tokens, k) for k in (givers[0], indirect[0], objects[0]))
        if giver is None or recipient is None or not (can_act(tokens[givers[0]]) and can_act(tokens[indirect[0]])):
            continue
        if not giver[1] < i < recipient[0] or _children(tokens, i, "conj", "aux", "xcomp", "ccomp"):
            continue
        if verb.tag != "VBD":
            continue  # the verb would have to agree
        kept = None
        if thing is not None and thing[0] == recipient[1] + 1 and recipient[1] - recipient[0] < _SHORT:
            pieces = text_of(text, tokens, recipient), text_of(text, tokens, thing)
            place = (tokens[recipient[0]].start, tokens[thing[1]].end)
            kept = apply_edits(text, [(*place, f"{pieces[1]} to {pieces[0]}")])
        yield kept, apply_edits(text, _exchange(text, tokens, giver, recipient)), "recipient"


# Verbs whose subject and object cannot change places: the result would say nothing.
_ONE_WAY = word_class("one way")


@dataclass(frozen=True, kw_only=True)
class RoleSwap(GrammarView):
    """Exchange subject and object, both as whole phrases, with the pronouns' case and the verb's number corrected.

    Passive sentences with an agent are included. Null if both orders may mean the same, or if the grammar is in doubt.

    Attributes:
        alike: Exchange only names, personal pronouns, people and groups of people, so that the result makes sense.

    Example:
        [build.roles]
        kind = "role_swap"
    """

    kind: ClassVar[str] = "role_swap"

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Exchange the roles of one sentence."""
        reason = "no subject and object"
        for found in transitives(text, tokens):
            rewritten, reason = exchanged_roles(text, tokens, found, alike=self.alike)
            if rewritten is not None:
                return rewritten, reason
        return None, reason


def exchanged_roles(text: str, tokens: Sequence[Token], found: Transitive, *, alike: bool) -> Rewrite:
    """Exchange subject and object of one clause of a sentence; `alike` as in `RoleSwap`."""
    if any(tokens[i].tag == "PRP$" for i in range(found.other[0], found.other[1] + 1)):
        return None, "possessive"
    fits = not alike or all(can_act(tokens[i]) for i in (found.subject_head, found.other_head))
    if verb_base(tokens[found.clause.predicate]) in SYMMETRIC_VERBS | _ONE_WAY or not fits:
        return None, "not alike"
    number = is_plural(tokens, found.other_head, found.other)
    before = is_plural(tokens, found.subject_head, found.subject)
    if number is None or before is None:
        return None, "number"
    subject = phrase_as(text, tokens, found.other, subject=True, place=found.subject)
    other = phrase_as(text, tokens, found.subject, subject=False, place=found.other)
    edits = [(*characters(tokens, found.subject), subject), (*characters(tokens, found.other), other)]
    if number != before or "I" in (tokens[found.subject[0]].text, subject):
        agreement = _agreement(tokens, found, plural=number, first_person=subject == "I")
        if agreement is None:
            return None, "verb form"
        edits += agreement
    return apply_edits(text, edits), "passive roles" if found.passive else "active roles"


def _agreement(tokens: Sequence[Token], found: Transitive, *, plural: bool, first_person: bool) -> list[Edit] | None:
    """Return the edit that makes the finite verb agree with its new subject; None if a second verb would have to."""
    assert found.clause.finite is not None
    finite, verb = tokens[found.clause.finite], tokens[found.clause.predicate]
    if shares_subject(tokens):
        return None
    if found.helpers:
        new = agreeing(finite.text, plural, first_person=first_person)
    elif found.clause.tag in ("VBZ", "VBP"):
        base = base_form(verb.text, found.clause.tag, verb.lemma)
        new = base if plural or first_person else inflect(base, "VBZ")
    else:
        return []
    return [(finite.start, finite.end, new)] if new != finite.text else []


@dataclass(frozen=True, kw_only=True)
class RolePairs(GrammarView):
    """Build two views of one clause: the same roles in other words, and its roles exchanged.

    The columns of `[build.NAME]` are, for the sentence "The lawyer sued the baker.":

    - `NAME_kept`: "The baker was sued by the lawyer." It says the same. Null if no rule keeps the meaning.
    - `NAME_exchanged`: "The baker sued the lawyer." It says something else, with nearly the words of the sentence.

    Besides the voice, the patterns are comparisons ("Anna is taller than Ben"), the order of two clauses ("before",
    "after", "because"), directions ("from Rome to Oslo") and recipients ("Anna sent Ben a card"). Both are null if
    none applies.

    Attributes:
        alike: Exchange subject and object only if both can act: names, personal pronouns, people and their groups.

    Example:
        [build.roles]
        kind = "role_pair"
        alike = false

        [views]
        exchanged = { text = "roles_exchanged", optional = true }
    """

    kind: ClassVar[str] = "role_pair"
    parts: ClassVar[tuple[str, ...]] = ("kept", "exchanged")
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return both views of one pattern, drawn at random; one with a paraphrase if there is any."""
        found = [*role_pairs(text, tokens), *self._voices(text, tokens)]
        if not found:
            return [(None, "no roles")] * len(self.parts)
        kept, exchanged, rule = rng.choice([each for each in found if each[0] is not None] or found)
        return [(kept, rule if kept else "no paraphrase"), (exchanged, rule)]

    def _voices(self, text: str, tokens: Sequence[Token]) -> list[RolePair]:
        """Return the other voice and the exchanged roles of each clause with subject and object."""
        pairs: list[RolePair] = []
        for clause in transitives(text, tokens):
            exchanged = exchanged_roles(text, tokens, clause, alike=self.alike)[0]
            if exchanged is not None:
                pairs.append((other_voice(text, tokens, clause)[0], exchanged, "voice"))
        return pairs
