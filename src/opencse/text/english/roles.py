"""Who does what to whom: pairs of a paraphrase and of a sentence with the roles exchanged.

| pattern | sentence | same roles | roles exchanged |
|---|---|---|---|
| voice | The lawyer sued the baker. | The baker was sued by the lawyer. | The baker sued the lawyer. |
| order | She slept before she ate. | Before she ate, she slept. | She ate before she slept. |
| direction | They flew from Rome to Oslo. | They flew to Oslo from Rome. | They flew from Oslo to Rome. |
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from opencse.text.english.lexicon import (
    OPPOSITE_TABLES,
    SYMMETRIC_VERBS,
    base_form,
    inflect,
    verb_base,
    word_class,
)
from opencse.text.english.parse import (
    GrammarView,
    Rewrite,
    Span,
    as_span,
    capitalised,
    characters,
    children,
    is_question,
    noun_phrase,
    recased,
    subtree,
    text_of,
    word_at,
)
from opencse.text.english.transitive import (
    agreeing,
    can_act,
    exchange,
    is_plural,
    other_voice,
    shares_subject,
    transitives,
)
from opencse.text.syntax import Token, apply_edits

RolePair = tuple[str | None, str]
"""The paraphrase (None if there is none), and the sentence with exchanged roles."""


class RolePairs(GrammarView):
    """Build two views of one clause: the same roles in other words, and its roles exchanged.

    The columns of `[build.NAME]` are, for the sentence "The lawyer sued the baker.":

    - `NAME_kept`: "The baker was sued by the lawyer." It means the same. Null if no rule keeps the
      meaning.
    - `NAME_exchanged`: "The baker sued the lawyer." It means something else, in nearly the same
      words: pronouns change their case, and the verb its number. Subject and object must be names,
      personal pronouns, people or groups of people, so that the result makes sense.

    In addition to the voice, the patterns are the order of two clauses ("before", "after", "because") and
    directions ("from Rome to Oslo"). Both are null if none applies.

    Example:
        [build.roles]
        kind = "role_pair"

        [views]
        exchanged = { text = "roles_exchanged", optional = true }

        >>> RolePairs().preview("The lawyer sued the baker.")
        [['The baker was sued by the lawyer.', 'The baker sued the lawyer.']]
    """

    kind = "role_pair"
    parts = ("kept", "exchanged")
    tables = OPPOSITE_TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return both views of one pattern, drawn at random, if possible with a paraphrase."""
        pairs = []
        one_sentence = not any(token.text in (".", "?", ";") for token in tokens[:-1])
        if one_sentence and not is_question(text):
            pairs += [(*pair, "order") for pair in _order(text, tokens)]
            pairs += [(*pair, "direction") for pair in _direction(text, tokens)]
        pairs += [(*pair, "voice") for pair in _voice(text, tokens)]
        if not pairs:
            return [(None, "no roles")] * len(self.parts)
        with_paraphrase = [pair for pair in pairs if pair[0] is not None]
        paraphrase, exchanged, rule = rng.choice(with_paraphrase or pairs)
        first: Rewrite = (None, "no paraphrase")
        if paraphrase:
            first = (paraphrase, rule)
        return [first, (exchanged, rule)]


def _voice(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange subject and object, also in passives; the other voice is the paraphrase."""
    for roles in transitives(text, tokens):
        verb = tokens[roles.clause.predicate]
        base = verb_base(verb)
        number = is_plural(tokens, roles.other_head, roles.other)
        before = is_plural(tokens, roles.subject_head, roles.subject)
        possessive = any(tokens[i].tag == "PRP$" for i in range(roles.other[0], roles.other[1] + 1))
        fits = can_act(tokens[roles.subject_head]) and can_act(tokens[roles.other_head])
        # Both orders may mean the same.
        either = base in SYMMETRIC_VERBS or base in word_class("one way")
        if possessive or either or not fits or number is None or before is None:
            continue
        edits = exchange(text, tokens, roles.subject, roles.other)
        subject = edits[0][2]
        if number != before or "I" in (tokens[roles.subject[0]].text, subject):
            if shares_subject(tokens):
                # A second verb would have to agree.
                continue
            finite = tokens[roles.clause.finite or 0]
            new = agreeing(finite.text, number, first_person=subject == "I")
            if not roles.helpers and roles.clause.tag in ("VBZ", "VBP"):
                base = base_form(verb.text, roles.clause.tag, verb.lemma)
                new = base if number or subject == "I" else inflect(base, "VBZ")
            edits.append((finite.start, finite.end, new))
        yield other_voice(text, tokens, roles)[0], apply_edits(text, edits)


def _order(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange two clauses: "A before B" becomes "B before A"; "Before B, A" is the paraphrase."""
    last = len(tokens) - 2
    if tokens[-1].text not in (".", "!"):
        return
    if any(token.text in ('"', "“", "”", "(", ":") for token in tokens[: last + 1]):
        return
    for i in range(len(tokens)):
        spans = _clauses(tokens, i)
        if spans is None:
            continue
        mark, main, subordinate = spans
        word = word_at(tokens, mark)
        one = _clause_text(text, tokens, main)
        other = _clause_text(text, tokens, subordinate)
        end = text[tokens[last].end :]
        fronted = mark == 0
        yield (
            _joined(one, word, other, end, fronted=not fronted),
            _joined(other, word, one, end, fronted=fronted),
        )


def _clauses(tokens: Sequence[Token], i: int) -> tuple[int, Span, Span] | None:
    """Return a conjunction, the main clause, and the subordinate one of the verb at index i.

    None unless both can be exchanged.
    """
    last = len(tokens) - 2
    marks = children(tokens, i, "mark")
    if tokens[i].relation != "advcl" or len(marks) != 1:
        return None
    mark = marks[0]
    head = tokens[i].head
    if word_at(tokens, mark) not in ("before", "after", "because", "until"):
        return None
    if tokens[head].head != head or head > last:
        return None
    if not children(tokens, i, "nsubj") or not children(tokens, head, "nsubj"):
        return None
    places = {k for k in subtree(tokens, i) if k <= last}
    ends = (min(places), max(places))
    span = as_span({k for k in places if tokens[k].text != "," or k not in ends})
    if span is None or span[0] != mark:
        return None
    before = tokens[mark - 1]
    if mark == 0 and tokens[min(span[1] + 1, last)].text == ",":
        main = (span[1] + 2, last)
    elif mark > 0 and span[1] == last:
        if before.text in (",", "and", "or", "even", "not", "just"):
            return None
        if before.tag in ("RB", "NNS", "CC"):
            # "shortly after", "two days before"
            return None
        main = (0, mark - 1)
    else:
        return None
    if main[1] <= main[0]:
        return None
    if tokens[main[0]].tag == "RB" and tokens[main[0] + 1].text == ",":
        # "Furthermore, he left"
        return None
    return mark, main, (mark + 1, span[1])


def _clause_text(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return a clause as it reads within a sentence."""
    was_first = span[0] == 0 and tokens[0].text != "I"
    return recased(text_of(text, tokens, span), tokens[span[0]], was_first=was_first)


def _joined(main: str, word: str, other: str, end: str, *, fronted: bool) -> str:
    """Return a sentence of two clauses: "Before OTHER, MAIN." or "MAIN before OTHER."."""
    if fronted:
        return capitalised(f"{word} {other}, {main}{end}")
    return capitalised(f"{main} {word} {other}{end}")


def _direction(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange the start and the end of a movement: "from A to B" becomes "from B to A"."""
    for i, token in enumerate(tokens[:-1]):
        governor = tokens[tokens[token.head].head].lemma.lower()
        if token.text != "from" or token.relation != "case" or governor in word_class("ranges"):
            continue
        start = noun_phrase(tokens, token.head)
        if start is None or start[0] != i + 1:
            continue
        to = start[1] + 1
        if word_at(tokens, to) != "to" or tokens[to].relation != "case":
            continue
        source = tokens[token.head]
        target = tokens[tokens[to].head]
        end = noun_phrase(tokens, tokens[to].head)
        if end is None or end[0] != to + 1 or max(children(tokens, tokens[to].head)) > end[1]:
            continue
        same = source.lemma.lower() == target.lemma.lower()
        if same or source.tag not in ("NNP", "NN") or source.tag != target.tag:
            continue
        origin = text_of(text, tokens, start)
        goal = text_of(text, tokens, end)
        first, last = characters(tokens, (i, end[1]))
        reordered = apply_edits(text, [(first, last, f"to {goal} from {origin}")])
        exchanged = apply_edits(text, [(first, last, f"from {goal} to {origin}")])
        yield reordered, exchanged
