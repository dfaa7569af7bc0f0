"""Who does what to whom: subject and object exchanged, and pairs of a paraphrase and of the roles exchanged.

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

    - `NAME_kept`: "The baker was sued by the lawyer." It says the same. Null if no rule keeps the
    meaning.
    - `NAME_exchanged`: "The baker sued the lawyer." It says something else, with nearly the words
      of the sentence: pronouns change their case, and the verb its number. Subject and object must
      be names, personal pronouns, people or groups of people, so that the result makes sense.

    Besides the voice, the patterns are the order of two clauses ("before", "after", "because") and
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
        """Return both views of one pattern, drawn at random; one with a paraphrase if there is any."""
        pairs = [(*pair, "voice") for pair in _voice(text, tokens)]
        if not any(token.text in (".", "?", ";") for token in tokens[:-1]) and not is_question(
            text
        ):
            patterns = {"order": _order, "direction": _direction}
            pairs[:0] = [
                (*pair, rule)
                for rule, pattern in patterns.items()
                for pair in pattern(text, tokens)
            ]
        if not pairs:
            return [(None, "no roles")] * len(self.parts)
        paraphrase, exchanged, rule = rng.choice(
            [pair for pair in pairs if pair[0] is not None] or pairs
        )
        return [(paraphrase, rule if paraphrase else "no paraphrase"), (exchanged, rule)]


def _voice(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange subject and object, also of passive clauses with an agent; the other voice keeps the meaning."""
    for roles in transitives(text, tokens):
        verb, base = tokens[roles.clause.predicate], verb_base(tokens[roles.clause.predicate])
        number = is_plural(tokens, roles.other_head, roles.other)
        before = is_plural(tokens, roles.subject_head, roles.subject)
        possessive = any(tokens[i].tag == "PRP$" for i in range(roles.other[0], roles.other[1] + 1))
        fits = can_act(tokens[roles.subject_head]) and can_act(tokens[roles.other_head])
        either = base in SYMMETRIC_VERBS or base in word_class(
            "one way"
        )  # both orders may mean the same
        if possessive or either or not fits or number is None or before is None:
            continue
        edits = exchange(text, tokens, roles.subject, roles.other)
        subject = edits[0][2]
        if number != before or "I" in (tokens[roles.subject[0]].text, subject):
            if shares_subject(tokens):
                continue  # a second verb would have to agree
            finite = tokens[roles.clause.finite or 0]
            new = agreeing(finite.text, number, first_person=subject == "I")
            if not roles.helpers and roles.clause.tag in ("VBZ", "VBP"):
                base = base_form(verb.text, roles.clause.tag, verb.lemma)
                new = base if number or subject == "I" else inflect(base, "VBZ")
            edits.append((finite.start, finite.end, new))
        yield other_voice(text, tokens, roles)[0], apply_edits(text, edits)


def _order(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange two clauses: "A before B" becomes "B before A"; "Before B, A" keeps the meaning."""
    last = len(tokens) - 2
    for i, token in enumerate(tokens):
        marks = children(tokens, i, "mark")
        if token.relation != "advcl" or len(marks) != 1 or tokens[-1].text not in (".", "!"):
            continue
        mark, head = marks[0], token.head
        word = word_at(tokens, mark)
        if (
            word not in ("before", "after", "because", "until")
            or tokens[head].head != head
            or head > last
        ):
            continue
        if not children(tokens, i, "nsubj") or not children(tokens, head, "nsubj"):
            continue
        places = {k for k in subtree(tokens, i) if k <= last}
        span = as_span(
            {k for k in places if tokens[k].text != "," or k not in (min(places), max(places))}
        )
        if span is None or span[0] != mark:
            continue
        fronted, before = mark == 0, tokens[mark - 1]
        if fronted and tokens[min(span[1] + 1, last)].text == ",":
            main = (span[1] + 2, last)
        elif (
            not fronted
            and span[1] == last
            and before.text not in (",", "and", "or", "even", "not", "just")
        ):
            main = (0, mark - 1)
        else:
            continue
        opening = (
            tokens[main[0]].tag == "RB" and tokens[main[0] + 1].text == ","
        )  # "Furthermore, he left"
        shifted = not fronted and before.tag in (
            "RB",
            "NNS",
            "CC",
        )  # "shortly after", "two days before"
        marked = any(token.text in ('"', "“", "”", "(", ":") for token in tokens[: last + 1])
        if main[1] <= main[0] or opening or shifted or marked:
            continue
        one, other = (
            recased(
                text_of(text, tokens, s),
                tokens[s[0]],
                was_first=s[0] == 0 and tokens[0].text != "I",
            )
            for s in (main, (mark + 1, span[1]))
        )
        end = text[tokens[last].end :]
        yield (
            _joined(one, word, other, end, fronted=not fronted),
            _joined(other, word, one, end, fronted=fronted),
        )


def _joined(main: str, word: str, other: str, end: str, *, fronted: bool) -> str:
    """Return a sentence of a main and another clause: "Before OTHER, MAIN." or "MAIN before OTHER."."""
    return capitalised(f"{word} {other}, {main}{end}" if fronted else f"{main} {word} {other}{end}")


def _direction(text: str, tokens: Sequence[Token]) -> Iterator[RolePair]:
    """Exchange where something starts and where it ends: "from A to B" becomes "from B to A"."""
    for i, token in enumerate(tokens[:-1]):
        governor = tokens[tokens[token.head].head].lemma.lower()
        if token.text != "from" or token.relation != "case" or governor in word_class("ranges"):
            continue
        start = noun_phrase(tokens, token.head)
        to = start[1] + 1 if start is not None else 0
        if (
            start is None
            or start[0] != i + 1
            or word_at(tokens, to) != "to"
            or tokens[to].relation != "case"
        ):
            continue
        source, target = tokens[token.head], tokens[tokens[to].head]
        end = noun_phrase(tokens, tokens[to].head)
        if end is None or end[0] != to + 1 or max(children(tokens, tokens[to].head)) > end[1]:
            continue
        if (
            source.lemma.lower() == target.lemma.lower()
            or source.tag not in ("NNP", "NN")
            or source.tag != target.tag
        ):
            continue
        origin, goal, place = (
            text_of(text, tokens, start),
            text_of(text, tokens, end),
            characters(tokens, (i, end[1])),
        )
        reordered, exchanged = f"to {goal} from {origin}", f"from {goal} to {origin}"
        yield apply_edits(text, [(*place, reordered)]), apply_edits(text, [(*place, exchanged)])
