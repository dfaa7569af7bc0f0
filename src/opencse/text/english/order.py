"""Phrases in another order: exchanged, which changes the meaning, or moved without a change of it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from opencse.text.english.clause import Clause, main_clause
from opencse.text.english.lexicon import SYMMETRIC_VERBS, indefinite_article, word_class
from opencse.text.english.parse import (
    MAX_TOKENS,
    GrammarView,
    Rewrite,
    Span,
    as_span,
    base_relation,
    capitalised,
    characters,
    children,
    noun_phrase,
    recased,
    subtree,
    text_of,
    word_at,
)
from opencse.text.syntax import Token, apply_edits, decapitalise

_TIME_PREPOSITIONS = (
    "after",
    "before",
    "since",
    "until",
    "by",
    "from",
    "despite",
    "under",
)  # if a time follows
_OTHER_CLAUSES = (
    "acl",
    "relcl",
    "ccomp",
    "parataxis",
    "appos",
    "advcl",
    "conj",
    "dep",
    "list",
    "xcomp",
    "csubj",
)
_MARKS = (",", ";", ":", "(", '"', "“", "–", "—")
_FINITE = ("VBD", "VBZ", "VBP", "MD")
_MAX_TOKENS = 24  # of a sentence that is reordered
_MAX_FRONT = 12  # tokens of an adverbial that moves behind the subject
_CLASSES = {"NN": "noun", "NNS": "noun", "NNP": "name", "NNPS": "name", "JJ": "adjective"}
_MAX_CONJUNCTS = 6


class Reordering(GrammarView):
    """Move an adverbial to the front, behind the subject or to the end, or exchange conjuncts: the same meaning.

    Null if the sentence is longer than 24 tokens, or has nothing that can be moved safely.

    Example:
        [build.reordered]
        kind = "reordering"

        >>> Reordering().preview("In 1990, the king left.")
        ['The king, in 1990, left.']
    """

    kind = "reordering"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible moves or exchanges, drawn at random."""
        clause = main_clause(tokens)
        moves = (_to_end, _to_front, _behind_subject)
        moved = (
            [result for move in moves if (result := move(text, clause)) is not None]
            if clause
            else []
        )
        exchanged: list[Rewrite] = [(new, "turned") for new in _exchanged_conjuncts(text, tokens)]
        groups = [group for group in (moved, exchanged) if group]
        return rng.choice(rng.choice(groups)) if groups else (None, "nothing to move")


def _is_one_clause(clause: Clause, without: set[int]) -> bool:
    """Whether the rest of the sentence is one plain clause, so that an adverbial at its end belongs to it."""
    tokens = clause.tokens
    if (
        len(tokens) > _MAX_TOKENS
        or tokens[-1].text != "."
        or clause.subject is None
        or clause.finite is None
    ):
        return False
    rest = [t for i, t in enumerate(tokens[:-1]) if i not in without]
    return not any(
        base_relation(t) in _OTHER_CLAUSES or "relcl" in t.relation or t.text in _MARKS
        for t in rest
    )


def _to_end(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, he left." into "He left in 1990."."""
    tokens, span = clause.tokens, _adverbial(clause, first=True)
    if span is None or span[1] + 2 >= len(tokens):
        return None
    start = span[1] + 1
    if tokens[start].text == ",":
        start += 1
    elif tokens[0].tag == "WRB" or span[1] > 3:
        return None  # no comma, so the phrase may end elsewhere
    if start != clause.subject and start not in subtree(tokens, clause.subject or 0):
        return None  # inversion, or another adverbial before the subject
    if not _is_one_clause(clause, set(range(start))) or word_at(tokens, start) in (
        "this",
        "these",
        "there",
    ):
        return None
    rest, moved = (
        text[tokens[start].start : tokens[-1].start].rstrip(),
        _opening(text, tokens, span),
    )
    return f"{capitalised(rest)} {moved}{text[tokens[-1].start :]}", "to the end"


def _to_front(text: str, clause: Clause) -> Rewrite | None:
    """Turn "He left in 1990." into "In 1990, he left."."""
    tokens, opening, span = clause.tokens, clause.tokens[0], _adverbial(clause, first=False)
    if span is None or span[0] < 2 or clause.subject is None:
        return None
    end = span[0] - (2 if tokens[span[0] - 1].text == "," else 1)  # the last token of the rest
    safe_capital = opening.tag in ("DT", "PRP", "PRP$", "NNP", "NNPS", "CD", "NNS")
    one_clause = _is_one_clause(clause, set(range(end + 1, span[1] + 1)))
    if not one_clause or not safe_capital or min(subtree(tokens, clause.subject)) != 0:
        return None
    rest = recased(text_of(text, tokens, (0, end)), opening, was_first=opening.text != "I")
    return f"{capitalised(text_of(text, tokens, span))}, {rest}.", "to the front"


def _behind_subject(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, the king left." into "The king, in 1990, left."."""
    tokens, subject = clause.tokens, clause.subject
    if (
        subject is None
        or tokens[subject].relation.startswith("expl")
        or tokens[subject].tag in ("PRP", "EX", "DT")
    ):
        return None
    whole = as_span(subtree(tokens, subject))
    if (
        whole is None
        or whole[0] < 3
        or tokens[whole[0] - 1].text != ","
        or whole[1] + 1 >= len(tokens)
    ):
        return None
    opener, verb = tokens[: whole[0] - 1], tokens[whole[1] + 1]
    heads = [t for t in opener if t.head >= len(opener)]
    adverbial = (
        len(heads) == 1
        and heads[0].head == clause.predicate
        and heads[0].relation in ("obl", "advcl")
    )
    marked = any(t.text in _MARKS for t in [*opener, *tokens[whole[0] : whole[1] + 1]])
    refers = any(
        t.tag in ("PRP", "PRP$") for t in opener
    )  # "In his youth, the king …": to something else
    finite = verb.tag in _FINITE and verb.text.isalpha()
    if not adverbial or marked or refers or not finite or len(opener) > _MAX_FRONT:
        return None
    opening, named = (
        _opening(text, tokens, (0, whole[0] - 2)),
        capitalised(text_of(text, tokens, whole)),
    )
    return f"{named}, {opening},{text[tokens[whole[1]].end :]}", "behind the subject"


def _opening(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the phrase that opens a sentence as it reads inside of it."""
    phrase = text_of(text, tokens, span)
    return phrase if tokens[0].pos == "PROPN" else decapitalise(phrase)


def _adverbial(clause: Clause, *, first: bool) -> Span | None:
    """Return the adverbial (of time, of place, or a clause) that opens the sentence, or that closes it."""
    tokens = clause.tokens
    for i in children(tokens, clause.predicate, "obl", "advcl"):
        span = as_span(subtree(tokens, i) - (set() if first else {len(tokens) - 1}) or {i})
        if span is not None and tokens[span[1]].text == ",":
            span = (span[0], span[1] - 1)
        if span is None or (span[0] != 0 if first else span[1] != len(tokens) - 2):
            continue
        opener, inner = word_at(tokens, span[0]), tokens[span[0] : span[1] + 1]
        if tokens[i].relation == "obl:agent" or any(
            t.text in (",", ";", ":", "(", '"') for t in inner
        ):
            continue
        if base_relation(tokens[i]) == "obl":
            year = len(inner) <= 5 and any(
                t.tag == "CD" and re.fullmatch(r"\d{4}", t.text) for t in inner
            )
            timed = opener in _TIME_PREPOSITIONS and (
                year or word_at(tokens, i) in word_class("times")
            )
            of_time_or_place = timed or opener in word_class("prepositions of place")
            movable = (
                of_time_or_place
                and len(inner) <= 8
                and tokens[clause.predicate].lemma.lower() != "remain"
            )
        else:
            limited = word_at(tokens, span[0] - 1) in (
                "only",
                "even",
                "just",
                "and",
                "but",
                "not",
                "especially",
            )
            finite = opener in word_class("conjunctions of clauses") and any(
                t.tag in _FINITE for t in inner
            )
            movable = finite and not limited and len(inner) <= 12
        if movable:
            return span
    return None


def _exchanged_conjuncts(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the sentence with the first and the last of its conjuncts exchanged, for each coordination.

    Conjuncts are nouns, names or adjectives. Those that may share a modifier, and sentences that
    refer to the order ("respectively"), are left out.
    """
    if any(token.text.lower() in word_class("of order") for token in tokens):
        return
    conjuncts: dict[int, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.relation == "conj" and token.head < i:
            conjuncts.setdefault(token.head, [token.head]).append(i)
    for members in conjuncts.values():
        spans = _conjuncts(tokens, members)
        if not spans:
            continue
        first, last = spans[0], spans[-1]
        new, article = exchange_phrases(text, tokens, first, last), word_at(tokens, first[0] - 1)
        wrong_article = article in ("a", "an") and article != indefinite_article(
            tokens[last[0]].text
        )
        start, end = characters(tokens, (first[0], last[1]))
        bracket = "(" in text[start:end] + text[end:].lstrip()[:1]  # its content would stay behind
        if new is not None and not wrong_article and not bracket:
            yield new


def _conjuncts(tokens: Sequence[Token], members: Sequence[int]) -> list[Span]:
    """Return the conjuncts as spans with only commas and the conjunction between them; none if there is more."""
    kind = _CLASSES.get(tokens[members[0]].tag)
    if (
        kind is None
        or len(members) > _MAX_CONJUNCTS
        or any(_CLASSES.get(tokens[i].tag) != kind for i in members)
    ):
        return []
    phrases = [_conjunct(tokens, i, first=i == members[0], end=members[-1]) for i in members]
    spans = [phrase for phrase in phrases if phrase is not None]
    if len(spans) < len(phrases):
        return []
    first, bare = spans[0], [span[0] == span[1] for span in spans]
    if kind == "name":
        if len({span[1] - span[0] for span in spans}) > 1:
            return []  # "Anna and Ben Smith"
        if len(spans) == 2 and (
            first[0] == 0 or tokens[first[0] - 1].tag not in ("IN", "VBD", "VBZ", "VBP", "TO")
        ):
            return []  # it may be one name
    elif not all(bare):
        opened = [tokens[span[0]].tag == "DT" for span in spans]
        if not bare[0] and all(bare[1:]) and opened[0] and first[1] - first[0] == 1:
            if word_at(tokens, first[0]) in ("a", "an"):
                return []
            spans[0] = (members[0], members[0])  # "the cats and dogs": they share the article
        elif not all(opened):
            return []  # "old men and women"
    between = [tokens[before[1] + 1 : after[0]] for before, after in pairwise(spans)]
    plain = all(token.text == "," or token.relation == "cc" for gap in between for token in gap)
    closed = bool(between[-1]) and between[-1][-1].text.lower() in ("and", "or")
    return spans if plain and closed and _conjuncts_end(tokens, spans[-1][1], kind) else []


def _conjunct(tokens: Sequence[Token], head: int, *, first: bool, end: int) -> Span | None:
    """Return a conjunct with its article, its adjectives and the parts of a name; None if it has other dependents."""
    places = {head}
    for i in children(tokens, head):
        token = tokens[i]
        if token.relation in ("cc", "conj", "punct", "case", "cc:preconj", "cop"):
            continue
        shared = token.text.lower() in ("both", "either", "neither") or token.tag == "PRP$"
        if first and (i > end or token.relation in ("nsubj", "aux", "advmod") or shared):
            continue  # it belongs to all of them, or to the clause
        if token.relation not in ("det", "amod", "compound", "flat", "nummod"):
            return None
        places |= subtree(tokens, i)
    return as_span(places)


def _conjuncts_end(tokens: Sequence[Token], last: int, kind: str) -> bool:
    """Whether the word after the conjuncts cannot belong to the last of them alone."""
    if last + 1 >= len(tokens):
        return True
    after = tokens[last + 1]
    if after.tag in ("NN", "NNS"):
        return kind == "adjective"
    if after.tag == "IN":
        return after.text.lower() != "of" and not last - 3 <= tokens[after.head].head <= last
    return after.tag in (".", ",", "VBD", "VBZ", "VBP", "MD", "RB", "TO", "WDT", "CC")


def exchange_phrases(text: str, tokens: Sequence[Token], one: Span, other: Span) -> str | None:
    """Return the text with two phrases exchanged; None if they overlap or read alike.

    None as well if one is part of a word: "re-election or exile" must not become "re-exile or
    election".
    """
    left, right = sorted((one, other))
    if left[1] >= right[0]:
        return None
    edges = [
        at
        for start, end in (characters(tokens, s) for s in (left, right))
        for at in (start - 1, end)
    ]
    if any(text[at : at + 1] in ("-", "/") for at in edges):
        return None
    before, after = text_of(text, tokens, left), text_of(text, tokens, right)
    if before.lower() == after.lower():
        return None
    at_start = left[0] == 0
    before = recased(before, tokens[left[0]], was_first=at_start)
    after = recased(after, tokens[right[0]], was_first=False, is_first=at_start)
    return apply_edits(
        text, [(*characters(tokens, left), after), (*characters(tokens, right), before)]
    )


_NOUNS = ("NN", "NNS", "NNP", "NNPS", "CD")
_WITHIN = (
    "compound",
    "flat",
    "goeswith",
    "fixed",
    "nummod",
    "nn",
    "appos",
)  # parts of a larger noun phrase
_SWAPPED = {"NN": "singular nouns", "NNS": "plural nouns", "CD": "numbers"}
"""The class within which a phrase can be swapped, by tag; all others are names."""
_ARGUMENTS = ("nsubj", "obj", "dobj", "iobj", "obl", "nmod", "pobj")


class PhraseSwap(GrammarView):
    """Exchange two noun phrases, names, numbers or adjectives of the same form: same words, another meaning.

    Conjuncts, and phrases whose exchange would not change the meaning, are left alone. Null if
    nothing can be swapped.

    Example:
        [build.swapped]
        kind = "phrase_swap"

        >>> PhraseSwap().preview("The cat saw the dog.")
        ['The dog saw the cat.']
    """

    kind = "phrase_swap"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Exchange one pair of phrases, drawn by weight."""
        if len(tokens) > MAX_TOKENS:
            return None, "too long"
        swaps = list(_swaps(tokens))
        while swaps:
            weights = [weight for weight, *_ in swaps]
            _, rule, one, other = swaps.pop(rng.choices(range(len(swaps)), weights)[0])
            swapped = exchange_phrases(text, tokens, one, other)
            if swapped is not None:
                return swapped, rule
        return None, "nothing to swap"


def _swaps(tokens: Sequence[Token]) -> Iterator[tuple[float, str, Span, Span]]:
    """Yield the weight, the rule and both phrases of every possible swap."""
    nouns = [i for i, t in enumerate(tokens) if t.tag in _NOUNS and base_relation(t) not in _WITHIN]
    nouns = [i for i in nouns if any(map(str.isalnum, tokens[i].text))]
    for i, j in combinations(nouns, 2):
        kind, *others = (_SWAPPED.get(tokens[k].tag, "names") for k in (i, j))
        if others != [kind] or _coordinated(tokens, i, j) or _symmetric(tokens, i, j):
            continue
        one, other = noun_phrase(tokens, i), noun_phrase(tokens, j)
        if one is not None and other is not None:
            first, second = base_relation(tokens[i]), base_relation(tokens[j])
            weight = 2.0 if first in _ARGUMENTS and second in _ARGUMENTS else 1.0
            if first == "nsubj" and second in ("obj", "dobj"):
                weight = 6.0
            yield weight * (2.0 if kind in ("names", "numbers") else 1.0), kind, one, other
    adjectives = [i for i, t in enumerate(tokens) if t.tag == "JJ" and t.relation == "amod"]
    for i, j in combinations(adjectives, 2):
        alike = _article(tokens, i) == _article(tokens, j)
        if (
            tokens[i].head != tokens[j].head
            and alike
            and not _coordinated(tokens, tokens[i].head, tokens[j].head)
        ):
            yield 1.0, "adjectives", (i, i), (j, j)


def _article(tokens: Sequence[Token], i: int) -> str:
    """Return the indefinite article that stands, or would stand, before a word."""
    before = word_at(tokens, i - 1)
    return before if before in ("a", "an") else indefinite_article(tokens[i].text)


def _first_conjunct(tokens: Sequence[Token], i: int) -> int:
    """Return the first of the conjuncts or appositions that a token belongs to."""
    while tokens[i].relation in ("conj", "appos") and tokens[i].head != i:
        i = tokens[i].head
    return i


def _coordinated(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether two tokens are conjuncts or appositions of each other."""
    return _first_conjunct(tokens, i) == _first_conjunct(tokens, j)


def _symmetric(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether a swap would keep the meaning: "A meets B", "A is B", "in A … in B"."""
    for subject, predicate in ((i, j), (j, i)):
        if tokens[subject].head == predicate and tokens[subject].relation == "nsubj":
            return _dependents(tokens, predicate, "cop") != ""
    head = tokens[i].head
    if head != tokens[j].head:
        return False
    place = _dependents(tokens, i, "case")
    return tokens[head].lemma.lower() in SYMMETRIC_VERBS or (
        place != "" and place == _dependents(tokens, j, "case")
    )


def _dependents(tokens: Sequence[Token], head: int, relation: str) -> str:
    """Return the words that depend on a token by this relation."""
    return " ".join(
        word_at(tokens, i) for i in children(tokens, head) if tokens[i].relation == relation
    )
