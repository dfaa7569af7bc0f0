"""Training rows of kinds that frames and patterns lack; their words are in kinds.tsv.

actions      questions for an action and for the opposite action; the actions are a word list of the
             package, without those that it keeps for `opencse check`
orders       one thing before or after another, in questions and in searches
limits       under or over an amount
constraints  with, without and only: "X without Y", "X that does not …", "only X"
prefixes     un-, non-, de-, in-, dis-
exchanged    questions in which two arguments change places
amounts      other numbers, dates and times, and tenses

A row's text can be either side. An exchange of the arguments of a question is *opposed* here, not
*exchanged*: the answer to one is wrong for the other.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from pathlib import Path

from opencse.text.english.lexicon import gerund, lexicon_rows

Row = dict[str, str]
Side = list[str]
"""Wordings of one question or claim."""


def read_words() -> dict[str, list[str]]:
    """Return the entries of kinds.tsv by name."""
    found = collections.defaultdict[str, list[str]](list)
    for line in Path(__file__).with_name("kinds.tsv").read_text(encoding="utf-8").splitlines():
        name, entries = line.split("\t")
        if name in ("prefix", "amount", "clock", "tense"):
            found[name].append(entries)
        else:
            found[name] += entries.split(" / ")
    return found


WORDS = read_words()
ASK = (
    "How do I {x}?",
    "How can I {x}?",
    "{x}",
    "What is the best way to {x}?",
    "I want to {x}.",
    "I'd like to {x}, what do I have to do?",
    "Where do I go if I want to {x}?",
    "steps to {x}",
    "Is there a way to {x}?",
    "Please show me how to {x}.",
    "trying to {x}, any tips?",
    "Which button do I press to {x}?",
    "help me {x}",
    "instructions: how to {x}",
    "Who can {x} for me?",
    "Can I {x} myself?",
    "What happens if I {x}?",
    "When should I {x}?",
    "how to {x} quickly",
    "We need to {x}.",
)
SAY = (
    "You can {x} on this page.",
    "Yesterday we had to {x}.",
    "They promised to {x}.",
    "The manual explains how to {x}.",
    "She was asked to {x}.",
    "It took us an hour to {x}.",
    "This button lets you {x}.",
    "My plan for today is to {x}.",
    "Nobody objected when I began to {x}.",
    "The rule says that we must {x}.",
    "In the end he decided to {x}.",
)
FIND = (
    "{x}",
    "looking for {x}",
    "Where can I find {x}?",
    "I need {x}.",
    "Are there any {x}?",
    "Can you recommend {x}?",
    "show me {x}",
    "list of {x}",
    "search: {x}",
    "Do you have {x}?",
    "I only want {x}.",
    "best {x}",
)

LINKED = (
    *("that ", "who ", "to ", "on ", "for ", "with", "in ", "of "),
    *("by ", "at ", "as ", "free ", "about ", "run "),
)
"""How an explanation begins that follows its noun without a comma."""


class Writer:
    """Writes rows of each kind.

    Args:
        seed: Seed of all choices.
        held_out: Write the actions that training leaves out instead of the others.
    """

    def __init__(self, seed: int, held_out: bool = False) -> None:
        self.rng = random.Random(seed)
        kept = "no" if held_out else "yes"
        self.all_actions = [row for row in lexicon_rows("actions") if row[3] == kept]
        self.kinds: dict[str, Callable[[], Row]] = {
            "actions": self.action,
            "orders": self.order,
            "limits": self.limit,
            "constraints": self.constraint,
            "prefixes": self.prefix,
            "exchanged": self.exchange,
            "amounts": self.amount,
        }

    def pick(self, name: str) -> str:
        """Return an entry."""
        return self.rng.choice(WORDS[name])

    def two(self, name: str) -> tuple[str, str]:
        """Return two different entries."""
        first, second = self.rng.sample(WORDS[name], 2)
        return first, second

    def choose(self, options: Side, count: int) -> Side:
        """Return up to `count` of some wordings."""
        return self.rng.sample(options, min(count, len(options)))

    def row(self, one: Side, other: Side, related: Side | None = None) -> Row:
        """Return a row of which `one` holds the text and its rewordings, and `other` what opposes it."""
        if self.rng.random() < 0.5:
            one, other = other, one
        same = self.choose(list(dict.fromkeys(one)), 4)
        opposed = self.choose(list(dict.fromkeys(other)), 3)
        row = {"text": same[0]}
        row |= {f"same_{i}": text for i, text in enumerate(same[1:], 1)}
        row |= {f"opposed_{i}": text for i, text in enumerate(opposed, 1)}
        row |= {f"related_{i}": text for i, text in enumerate(related or [], 1)}
        return self.styled(row)

    def styled(self, row: Row) -> Row:
        """Return a row in which texts begin with a capital, or all are as typed into a search box."""
        typed = self.rng.random() < 0.25
        styled = {}
        for column, text in row.items():
            text = " ".join(text.split())
            if typed:
                styled[column] = text.rstrip(".?").lower()
            else:
                styled[column] = text[:1].upper() + text[1:]
        return styled

    def asked(self, phrase: str, count: int = 3) -> Side:
        """Return questions for an action."""
        return [form.format(x=phrase) for form in self.choose(list(ASK), count)]

    def action(self) -> Row:
        """Return questions or statements about an action, opposed to those about the opposite action."""
        first, second, objects, _ = self.rng.choice(self.all_actions)
        thing = self.rng.choice(objects.split(", "))
        related = [item for item in objects.split(", ") if item != thing]
        forms = self.choose(list(SAY if self.rng.random() < 0.3 else ASK), 5)
        sides = []
        for verbs in (first, second):
            phrases = [
                verb.replace("{o}", thing) if "{o}" in verb else f"{verb} {thing}"
                for verb in verbs.split(", ")
            ]
            plain = phrases[0]
            # The same form on both sides, so that only the action differs; and others.
            side = [forms[0].format(x=plain)]
            for form in forms[1:]:
                side.append(form.format(x=self.rng.choice(phrases)))
            side.append(forms[0].format(x=phrases[-1]))
            sides.append(side)
        other_thing = [ASK[0].format(x=f"{first.split(', ')[0]} {item}") for item in related[:1]]
        if "{o}" in first.split(", ")[0]:
            other_thing = []
        return self.row(sides[0], sides[1], other_thing)

    def order(self) -> Row:
        """Return something before or after an event, or two actions in one order or the other."""
        kind = self.rng.randrange(3)
        event = self.pick("event")
        if kind == 0:
            things = self.pick("eventful")
            early = [
                f"{things} before {event}",
                f"{things} earlier than {event}",
                f"Are there any {things} before {event}?",
                f"I'm looking for {things} before {event}.",
                f"{things}, no later than {event}",
                f"show me {things} until {event}",
                f"{things} at any time up to {event}",
            ]
            late = [
                f"{things} after {event}",
                f"{things} later than {event}",
                f"Are there any {things} after {event}?",
                f"I'm looking for {things} after {event}.",
                f"{things}, not earlier than {event}",
                f"show me {things} from {event} on",
                f"{things} once {event} is over",
            ]
            return self.row(early, late)
        if kind == 1:
            doing = self.pick("doing")
            early = [
                f"Can I {doing} before {event}?",
                f"Should I {doing} before {event}?",
                f"Is it best to {doing} ahead of {event}?",
                f"{doing} before {event}",
                f"Do I have to {doing} earlier than {event}?",
                f"Please {doing} before {event}.",
                f"You should {doing} prior to {event}.",
            ]
            late = [
                f"Can I {doing} after {event}?",
                f"Should I {doing} after {event}?",
                f"Is it best to {doing} following {event}?",
                f"{doing} after {event}",
                f"Do I have to {doing} later than {event}?",
                f"Please {doing} after {event}.",
                f"You should {doing} once {event} is over.",
            ]
            return self.row(early, late)
        first, second = self.pick("ordered").split(" : ")

        def in_order(a: str, b: str) -> Side:
            return [
                f"Should I {a} before I {b}?",
                f"Do I have to {a} first and then {b}?",
                f"first {a}, then {b}",
                f"{a} before {gerund(b.split()[0])} {' '.join(b.split()[1:])}",
                f"Can I {b} after I {a}?",
                f"{b} only after you {a}",
                f"Always {a} before you {b}.",
                f"Is it better to {a} before I {b}?",
            ]

        return self.row(in_order(first, second), in_order(second, first))

    def limit(self) -> Row:
        """Return something under or over an amount."""
        thing, amount = self.pick("thing"), self.pick("limit")

        def side(name: str) -> Side:
            phrases = [form.format(n=amount) for form in self.choose(WORDS[name], 4)]
            forms = self.choose(
                [
                    "{t} {p}",
                    "looking for {t} {p}",
                    "I need {t}, {p}.",
                    "Is there {t} {p}?",
                    "find me {t} {p}",
                    "{p}: {t}",
                    "Can you recommend {t} {p}?",
                ],
                4,
            )
            return [
                form.format(t=thing, p=phrase) for form, phrase in zip(forms, phrases, strict=True)
            ]

        other = self.pick("limit")
        return self.row(side("under"), side("over"), [f"{thing} with {other}"])

    def constraint(self) -> Row:
        """Return a search for something with or without a feature, or only with it."""
        kind = self.rng.randrange(3)
        if kind == 0:
            holder, feature = self.pick("holder"), self.pick("feature")
            bare = feature.removeprefix("a ").removeprefix("an ")
            having = [
                f"{holder} with {feature}",
                f"{holder} that has {bare}",
                f"I want a {holder} with {bare}.",
                f"Which {holder} has {bare}?",
                f"{bare} must be there: {holder}",
                f"{holder}, {bare} included",
                f"The {holder} has {feature}.",
                f"There is {feature} with this {holder}.",
                f"This {holder} comes with {bare}.",
            ]
            lacking = [
                f"{holder} without {feature}",
                f"{holder} that does not have {bare}",
                f"I want a {holder} with no {bare}.",
                f"Which {holder} has no {bare}?",
                f"{bare} must not be there: {holder}",
                f"{holder}, no {bare}",
                f"The {holder} has no {bare}.",
                f"There is no {bare} with this {holder}.",
                f"This {holder} comes without {bare}.",
                f"{holder} free of {bare}",
            ]
            return self.row(having, lacking)
        noun, quality = self.pick("noun"), self.pick("quality")
        if kind == 1:
            having = [
                f"{noun} that are {quality}",
                f"{quality} {noun}",
                f"I need {noun} which are {quality}.",
                f"Are these {noun} {quality}?",
                f"only {noun} that are {quality}",
                f"{noun}, must be {quality}",
                f"These {noun} are {quality}.",
                f"Every one of the {noun} is {quality}.",
            ]
            lacking = [
                f"{noun} that are not {quality}",
                f"{noun} other than {quality} ones",
                f"I need {noun} which aren't {quality}.",
                f"Are these {noun} not {quality}?",
                f"no {noun} that are {quality}, please",
                f"{noun}, must not be {quality}",
                f"These {noun} are not {quality}.",
                f"None of the {noun} is {quality}.",
            ]
            return self.row(having, lacking)
        only = [
            f"only {noun} that are {quality}",
            f"{noun}: nothing but {quality} ones",
            f"show {quality} {noun} exclusively",
            f"{noun}, {quality} ones only",
            f"leave out all {noun} that aren't {quality}",
        ]
        all_but = [
            f"all {noun} except {quality} ones",
            f"{noun}: anything but {quality} ones",
            f"show every kind of {noun} but {quality} ones",
            f"{noun}, no {quality} ones",
            f"leave out all {noun} that are {quality}",
        ]
        return self.row(only, all_but)

    def prefix(self) -> Row:
        """Return a word with and without a negative prefix."""
        plain, negative, negative_long, plain_long, nouns = self.pick("prefix").split(" : ")
        noun = self.rng.choice(nouns.split(", "))
        is_group = plain in ("smokers", "members", "residents")

        def side(word: str, explained: str) -> Side:
            phrases = [f"{noun} for {word}"] if is_group else [f"{word} {noun}"]
            for part in explained.split(", "):
                if is_group:
                    phrases.append(f"{noun} for {part}")
                elif part.startswith(LINKED):
                    phrases.append(f"{noun} {part}")
                else:
                    phrases.append(f"{noun}, {part}")
            forms = self.choose(list(FIND), 5)
            found = [forms[0].format(x=phrases[0])]
            for form in forms[1:]:
                found.append(form.format(x=self.rng.choice(phrases)))
            found.append(forms[0].format(x=phrases[-1]))
            found.append(f"We have {phrases[0]}.")
            return found

        return self.row(side(plain, plain_long), side(negative, negative_long))

    def exchange(self) -> Row:
        """Return a question, opposed to the same with two arguments exchanged."""
        kind = self.rng.randrange(3)
        if kind == 0:
            first, second = self.pick("convert").split(" : ")

            def converted(a: str, b: str) -> Side:
                return [
                    f"convert {a} into {b}",
                    f"How do I change {a} into {b}?",
                    f"turn {a} into {b}",
                    f"I have {a} and need {b}.",
                    f"{a} to {b}",
                    f"How do I get {b} from {a}?",
                    f"from {a} to {b}",
                    f"Please give me {b} instead of {a}.",
                ]

            return self.row(converted(first, second), converted(second, first))
        if kind == 1:
            first, second = self.pick("transfer").split(" : ")
            what = self.pick("moved")
            if self.rng.random() < 0.25:
                first, second = self.pick("translate").split(" : ")
                what = self.rng.choice(["a letter", "a poem", "my thesis", "a menu", "the manual"])

            def moved(a: str, b: str) -> Side:
                return [
                    f"move {what} from {a} to {b}",
                    f"How do I transfer {what} from {a} to {b}?",
                    f"How can I get {what} to {b} from {a}?",
                    f"switch from {a} to {b}",
                    f"{what}: {a} to {b}",
                    f"I want {what} out of {a} and into {b}.",
                    f"Bring {what} over to {b}, coming from {a}.",
                ]

            return self.row(moved(first, second), moved(second, first))
        one, other = self.pick("agents").split(" : ")
        verb, converse = self.pick("askfor").split(" : ")
        if self.rng.random() < 0.5:
            verb, converse = converse, verb

        def acted(a: str, b: str) -> Side:
            return [
                f"Can {a} {verb} {b}?",
                f"Are {a} allowed to {verb} {b}?",
                f"Can {b} {converse} {a}?",
                f"Is it possible for {a} to {verb} {b}?",
                f"May {b} {converse} {a}?",
                f"Would {a} ever {verb} {b}?",
                f"{a} may {verb} {b}.",
                f"{b} may {converse} {a}.",
                f"{a} who want to {verb} {b}",
            ]

        return self.row(acted(one, other), acted(other, one))

    def amount(self) -> Row:
        """Return a statement with a number or a time; with others it says something else."""
        if self.rng.random() < 0.2:
            later, before, later_reworded, before_reworded, things = self.pick("tense").split(" : ")
            thing = self.rng.choice(things.split(", "))
            after = [f"{thing} {later}.", f"{thing} {later_reworded}.", f"I heard {thing} {later}."]
            done = [
                f"{thing} {before}.",
                f"{thing} {before_reworded}.",
                f"I heard {thing} {before}.",
            ]
            return self.row(after, done)
        *forms, numbers = self.pick("amount" if self.rng.random() < 0.6 else "clock").split(" : ")
        one, other, third = self.rng.sample(numbers.split(", "), 3)
        first, *more = self.rng.sample(forms, len(forms))
        row = {"text": first.format(n=one)}
        row |= {f"same_{i}": form.format(n=one) for i, form in enumerate(more, 1)}
        row["exchanged_1"] = first.format(n=other)
        row["exchanged_2"] = self.rng.choice(more).format(n=third)
        return self.styled(row)

    def write(self, kind: str, count: int) -> list[Row]:
        """Return distinct rows of a kind, as many as `count` trials give."""
        found: dict[tuple[str, ...], Row] = {}
        for _ in range(count):
            row = self.kinds[kind]()
            if len(set(row.values())) == len(row) and len(row) > 2:
                found[tuple(sorted(row.values()))] = row
        return list(found.values())
