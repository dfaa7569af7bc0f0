"""Who does what to whom: subject and object exchanged, and pairs of a paraphrase and of the roles exchanged.

| pattern | sentence | same roles | roles exchanged |
|---|---|---|---|
| voice | The lawyer sued the baker. | The baker was sued by the lawyer. | The baker sued the lawyer. |
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
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, SYMMETRIC_VERBS, LexiconTable, word_class
from opencse.text.english.parse import Span, as_span, base_relation, children, noun_phrase, subtree, text_of, word_at
from opencse.text.english.transitive import (
    Transitive,
    agreeing,
    can_act,
    exchange,
    is_plural,
    other_voice,
    shares_subject,
    transitives,
)
from opencse.text.english.verbs import base_form, inflect, verb_base
from opencse.text.syntax.tokens import Token
from opencse.text.views.text_edits import Edit, apply_edits, decapitalise

RolePair = tuple[str | None, str, str]
"""The paraphrase (None if there is none), the sentence with exchanged roles, and the name of the pattern."""

_COPULAS = ("is", "are", "was", "were", "am")
_WITHIN = ("acl", "advcl", "conj", "parataxis", "appos", "mark", "punct", "ccomp")
_SHORT = 5  # tokens of a recipient that stands before the object


@dataclass(frozen=True, kw_only=True)
class RoleSwap(GrammarView):
    """Exchange subject and object, both as whole phrases, with the pronouns' case and the verb's number corrected.

    Passive sentences with an agent are included. Null if both orders may mean the same, or if the grammar is in doubt.

    Attributes:
        alike: Exchange only names, personal pronouns, people and groups of people, so that the result makes sense.

    Example:
        [build.roles]
        kind = "role_swap"

        >>> RoleSwap().preview("The lawyer sued the baker.")
        ['The baker sued the lawyer.']
    """

    kind: ClassVar[str] = "role_swap"

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Exchange the roles of one sentence."""
        reason = "no subject and object"
        for clause in transitives(text, tokens):
            rewritten, reason = _exchanged_roles(text, tokens, clause, alike=self.alike)
            if rewritten is not None:
                return rewritten, reason
        return None, reason


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

        >>> RolePairs().preview("The lawyer sued the baker.")
        [['The baker was sued by the lawyer.', 'The baker sued the lawyer.']]
    """

    kind: ClassVar[str] = "role_pair"
    parts: ClassVar[tuple[str, ...]] = ("kept", "exchanged")
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return both views of one pattern, drawn at random; one with a paraphrase if there is any."""
        pairs: list[RolePair] = []
        if not any(token.text in (".", "?", ";") for token in tokens[:-1]) and not text.rstrip().endswith("?"):
            for pattern in (_comparison, _order, _direction, _recipient):
                pairs += pattern(text, tokens)
        for clause in transitives(text, tokens):
            swapped = _exchanged_roles(text, tokens, clause, alike=self.alike)[0]
            if swapped is not None:
                pairs.append((other_voice(text, tokens, clause)[0], swapped, "voice"))
        if not pairs:
            return [(None, "no roles")] * len(self.parts)
        paraphrase, exchanged, rule = rng.choice([pair for pair in pairs if pair[0] is not None] or pairs)
        return [(paraphrase, rule if paraphrase else "no paraphrase"), (exchanged, rule)]


def _exchanged_roles(text: str, tokens: Sequence[Token], roles: Transitive, *, alike: bool) -> Rewrite:
    """Exchange subject and object of one clause of a sentence; `alike` as in `RoleSwap`."""
    if any(tokens[i].tag == "PRP$" for i in range(roles.other[0], roles.other[1] + 1)):
        return None, "possessive"
    fits = not alike or (can_act(tokens[roles.subject_head]) and can_act(tokens[roles.other_head]))
    base = verb_base(tokens[roles.clause.predicate])
    if base in SYMMETRIC_VERBS or base in word_class("one way") or not fits:
        return None, "not alike"
    number = is_plural(tokens, roles.other_head, roles.other)
    before = is_plural(tokens, roles.subject_head, roles.subject)
    if number is None or before is None:
        return None, "number"
    edits = exchange(text, tokens, roles.subject, roles.other)
    subject = edits[0][2]
    if number != before or "I" in (tokens[roles.subject[0]].text, subject):
        agreement = _agreement(tokens, roles, plural=number, first_person=subject == "I")
        if agreement is None:
            return None, "verb form"
        edits += agreement
    return apply_edits(text, edits), "active roles" if roles.by is None else "passive roles"


def _agreement(tokens: Sequence[Token], roles: Transitive, *, plural: bool, first_person: bool) -> list[Edit] | None:
    """Return the edit that makes the finite verb agree with its new subject; None if a second verb would have to."""
    if shares_subject(tokens):
        return None
    assert roles.clause.finite is not None
    finite, verb, tag = tokens[roles.clause.finite], tokens[roles.clause.predicate], roles.clause.tag
    new = finite.text
    if roles.helpers:
        new = agreeing(finite.text, plural, first_person=first_person)
    elif tag in ("VBZ", "VBP"):
        base = base_form(verb.text, tag, verb.lemma)
        new = base if plural or first_person else inflect(base, "VBZ")
    return [(finite.start, finite.end, new)] if new != finite.text else []


def _phrase(tokens: Sequence[Token], head: int, *, without: int | None = None) -> Span | None:
    """Return a noun phrase with its "of" phrases; None if it is no span, has clauses or refers back."""
    places = subtree(tokens, head) - (subtree(tokens, without) if without is not None else set())
    span, noun = as_span(places), tokens[head]
    if span is None or any(base_relation(tokens[i]) in _WITHIN for i in places - {head}):
        return None
    if noun.pos not in ("NOUN", "PROPN", "PRON") or noun.tag in ("EX", "WP", "WDT", "DT"):
        return None
    return None if any(tokens[i].tag in ("PRP$", "VBZ", "VBD", "VBP", "MD") for i in places) else span


def _comparison(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange what is compared: "Anna is taller than Ben"; a comparative of the opposite keeps the meaning."""
    for i, token in enumerate(tokens):
        copulas = children(tokens, i, "cop") if token.tag in ("JJR", "JJ") else []
        subjects = children(tokens, i, "nsubj") if copulas else []
        if len(subjects) != 1:
            continue
        cases = [(k, c) for k in children(tokens, i, "obl") for c in children(tokens, k, "case")]
        thans = [(k, c) for k, c in cases if word_at(tokens, c) == "than"]
        degrees = [tokens[k] for k in children(tokens, i, "advmod") if word_at(tokens, k) in ("more", "less")]
        if len({k for k, _ in thans}) != 1 or (token.tag == "JJ" and len(degrees) != 1):
            continue
        (compared, than), copula = thans[0], copulas[0]
        subject, other = _phrase(tokens, subjects[0]), _phrase(tokens, compared, without=than)
        if subject is None or other is None or not subject[1] < copula < i < other[0]:
            continue
        joined = any(tokens[k].relation == "conj" for k in children(tokens, i))
        plural = is_plural(tokens, compared, other)
        if joined or tokens[other[0]].tag == "IN" or plural is None or word_at(tokens, copula) not in _COPULAS:
            continue
        verb = tokens[copula]
        edits = [*exchange(text, tokens, subject, other), (verb.start, verb.end, agreeing(verb.text, plural))]
        word = degrees[0] if degrees else token
        new = lexicon.opposites().get((token.text.lower(), "ADJ"), "")
        if degrees:
            new = "less" if word.text.lower() == "more" else "more"
        paraphrase = apply_edits(text, [*edits, (word.start, word.end, new)]) if new else None
        yield paraphrase, apply_edits(text, edits), "comparison"


def _order(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange two clauses: "A before B" becomes "B before A"; "Before B, A" keeps the meaning."""
    last = len(tokens) - 2
    for i, token in enumerate(tokens):
        marks = children(tokens, i, "mark")
        if token.relation != "advcl" or len(marks) != 1 or tokens[-1].text not in (".", "!"):
            continue
        mark, head = marks[0], token.head
        word = word_at(tokens, mark)
        if word not in ("before", "after", "because", "until") or tokens[head].head != head or head > last:
            continue
        if not children(tokens, i, "nsubj") or not children(tokens, head, "nsubj"):
            continue
        places = subtree(tokens, i)
        places = {k for k in places if k <= last and not (tokens[k].text == "," and k in (min(places), max(places)))}
        span = as_span(places)
        if span is None or span[0] != mark:
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
        marked = any(tokens[k].text in ('"', "“", "”", "(", ":") for k in range(last + 1))
        if main[1] <= main[0] or opening or shifted or marked:
            continue
        clauses = [_uncapitalised(text, tokens, main), _uncapitalised(text, tokens, (mark + 1, span[1]))]
        end = text[tokens[last].end :]
        paraphrase = _joined(clauses, word, end, fronted=not fronted)
        yield paraphrase, _joined(clauses[::-1], word, end, fronted=fronted), "order"


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
        if (
            token.text != "from"
            or token.relation != "case"
            or tokens[tokens[token.head].head].lemma.lower() in word_class("ranges")
        ):
            continue
        start = noun_phrase(tokens, token.head)
        to = start[1] + 1 if start is not None else 0
        if start is None or start[0] != i + 1 or to >= len(tokens) or tokens[to].text != "to":
            continue
        head = tokens[to].head
        end = noun_phrase(tokens, head) if tokens[to].relation == "case" else None
        if end is None or end[0] != to + 1 or any(k > end[1] for k, t in enumerate(tokens) if t.head == head):
            continue
        source, target = tokens[token.head], tokens[head]
        if source.lemma.lower() == target.lemma.lower() or source.tag not in ("NNP", "NN") or source.tag != target.tag:
            continue
        one, other = text_of(text, tokens, start), text_of(text, tokens, end)
        place = (token.start, tokens[end[1]].end)
        paraphrase = apply_edits(text, [(*place, f"to {other} from {one}")])
        yield paraphrase, apply_edits(text, [(*place, f"from {other} to {one}")]), "direction"


def _recipient(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange giver and recipient: "Anna sent Ben a card", where "sent a card to Ben" keeps the meaning."""
    for i, verb in enumerate(tokens):
        if verb.tag != "VBD" or verb.lemma.lower() not in word_class("giving"):
            continue  # in the present tense the verb would have to agree
        roles = [children(tokens, i, relation) for relation in ("nsubj", "iobj", "obj")]
        if any(len(dependents) != 1 for dependents in roles) or children(tokens, i, "conj", "aux", "xcomp", "ccomp"):
            continue
        heads = [dependents[0] for dependents in roles]
        giver, recipient, thing = (_phrase(tokens, head) for head in heads)
        if giver is None or recipient is None or tokens[heads[0]].relation != "nsubj":
            continue
        if not giver[1] < i < recipient[0] or not (can_act(tokens[heads[0]]) and can_act(tokens[heads[1]])):
            continue
        paraphrase = None
        if thing is not None and thing[0] == recipient[1] + 1 and recipient[1] - recipient[0] < _SHORT:
            place = (tokens[recipient[0]].start, tokens[thing[1]].end)
            moved = f"{text_of(text, tokens, thing)} to {text_of(text, tokens, recipient)}"
            paraphrase = apply_edits(text, [(*place, moved)])
        yield paraphrase, apply_edits(text, exchange(text, tokens, giver, recipient)), "recipient"
