"""Phrases in another order: exchanged, which changes the meaning, or just moved."""

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
    asides,
    base_relation,
    capitalised,
    characters,
    children,
    noun_phrase,
    recased,
    subtree,
    text_with_aside,
    word_at,
)
from opencse.text.syntax import Token, apply_edits, decapitalise

# These open an adverbial if a time follows.
_TIME_PREPOSITIONS = ("after", "before", "since", "until", "by", "from", "despite", "under")
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
# Tokens of a sentence that is reordered, at most.
_MAX_TOKENS = 24
# Tokens of an adverbial that moves after the subject, at most.
_MAX_FRONT = 12
_CLASSES = {"NN": "noun", "NNS": "noun", "NNP": "name", "NNPS": "name", "JJ": "adjective"}
_MAX_CONJUNCTS = 6


class Reordering(GrammarView):
    """Move an adverbial, or exchange conjuncts, without a change of meaning.

    The adverbial moves to the front, after the subject or to the end.

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
        groups: list[list[Rewrite]] = [[], []]
        moved, exchanged = groups
        if clause is not None:
            for move in (_to_end, _to_front, _behind_subject):
                result = move(text, clause)
                # A bracket is no token, so that a move may lose it.
                if result is not None and asides(result[0] or "") == asides(text):
                    moved.append(result)
        for new in _exchanged_conjuncts(text, tokens):
            exchanged.append((new, "turned"))
        groups = [group for group in groups if group]
        if not groups:
            return None, "nothing to move"
        return rng.choice(rng.choice(groups))


def _is_one_clause(clause: Clause, without: set[int]) -> bool:
    """Return whether the rest of the sentence is one plain clause of the adverbial."""
    tokens = clause.tokens
    if len(tokens) > _MAX_TOKENS or tokens[-1].text != ".":
        return False
    if clause.subject is None or clause.finite is None:
        return False
    for i, token in enumerate(tokens[:-1]):
        if i in without:
            continue
        if base_relation(token) in _OTHER_CLAUSES or "relcl" in token.relation:
            return False
        if token.text in _MARKS:
            return False
    return True


def _to_end(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, he left." into "He left in 1990."."""
    tokens = clause.tokens
    span = _adverbial(clause, first=True)
    if span is None or span[1] + 2 >= len(tokens):
        return None
    start = span[1] + 1
    if tokens[start].text == ",":
        start += 1
    elif tokens[0].tag == "WRB" or span[1] > 3:
        # Without a comma, the phrase may end elsewhere.
        return None
    if start != clause.subject and start not in subtree(tokens, clause.subject or 0):
        # Inversion, or another adverbial before the subject.
        return None
    if not _is_one_clause(clause, set(range(start))):
        return None
    if word_at(tokens, start) in ("this", "these", "there"):
        return None
    rest = capitalised(text[tokens[start].start : tokens[-1].start].rstrip())
    moved = _opening(text, tokens, span)
    return f"{rest} {moved}{text[tokens[-1].start :]}", "to the end"


def _to_front(text: str, clause: Clause) -> Rewrite | None:
    """Turn "He left in 1990." into "In 1990, he left."."""
    tokens = clause.tokens
    opening = tokens[0]
    span = _adverbial(clause, first=False)
    if span is None or span[0] < 2 or clause.subject is None:
        return None
    # The last token of the rest.
    end = span[0] - (2 if tokens[span[0] - 1].text == "," else 1)
    safe_capital = opening.tag in ("DT", "PRP", "PRP$", "NNP", "NNPS", "CD", "NNS")
    one_clause = _is_one_clause(clause, set(range(end + 1, span[1] + 1)))
    if not one_clause or not safe_capital or min(subtree(tokens, clause.subject)) != 0:
        return None
    rest = text_with_aside(text, tokens, (0, end))
    rest = recased(rest, opening, was_first=opening.text != "I")
    moved = capitalised(text_with_aside(text, tokens, span))
    return f"{moved}, {rest}.", "to the front"


def _behind_subject(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, the king left." into "The king, in 1990, left."."""
    tokens = clause.tokens
    subject = clause.subject
    if subject is None or tokens[subject].relation.startswith("expl"):
        return None
    if tokens[subject].tag in ("PRP", "EX", "DT"):
        return None
    span = as_span(subtree(tokens, subject))
    if span is None or span[0] < 3 or span[1] + 1 >= len(tokens):
        return None
    if tokens[span[0] - 1].text != ",":
        return None
    opener = tokens[: span[0] - 1]
    verb = tokens[span[1] + 1]
    heads = [token for token in opener if token.head >= len(opener)]
    if len(heads) != 1 or heads[0].head != clause.predicate or len(opener) > _MAX_FRONT:
        return None
    if heads[0].relation not in ("obl", "advcl"):
        return None
    if any(token.text in _MARKS for token in [*opener, *tokens[span[0] : span[1] + 1]]):
        return None
    if any(token.tag in ("PRP", "PRP$") for token in opener):
        # "In his youth, the king …" would refer to something else.
        return None
    if verb.tag not in _FINITE or not verb.text.isalpha():
        return None
    opening = _opening(text, tokens, (0, span[0] - 2))
    named = text_with_aside(text, tokens, span)
    rest = text[tokens[span[0]].start :].removeprefix(named)
    return f"{capitalised(named)}, {opening},{rest}", "behind the subject"


def _opening(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the phrase that opens a sentence as it reads inside of it."""
    phrase = text_with_aside(text, tokens, span)
    return phrase if tokens[0].pos == "PROPN" else decapitalise(phrase)


def _adverbial(clause: Clause, *, first: bool) -> Span | None:
    """Return the adverbial (a time, a place or a clause) that opens the sentence, or closes it."""
    tokens = clause.tokens
    for i in children(tokens, clause.predicate, "obl", "advcl"):
        places = subtree(tokens, i)
        if not first:
            # Not the final mark.
            places = places - {len(tokens) - 1} or {i}
        span = as_span(places)
        if span is not None and tokens[span[1]].text == ",":
            span = (span[0], span[1] - 1)
        if span is None:
            continue
        at_edge = span[0] == 0 if first else span[1] == len(tokens) - 2
        inner = tokens[span[0] : span[1] + 1]
        marked = any(token.text in (",", ";", ":", "(", '"') for token in inner)
        if not at_edge or marked or tokens[i].relation == "obl:agent":
            continue
        if base_relation(tokens[i]) == "obl":
            movable = _is_movable_phrase(clause, i, span)
        else:
            movable = _is_movable_clause(tokens, span)
        if movable:
            return span
    return None


def _is_movable_phrase(clause: Clause, i: int, span: Span) -> bool:
    """Return whether a phrase is a short adverbial of time or place."""
    tokens = clause.tokens
    inner = tokens[span[0] : span[1] + 1]
    if len(inner) > 8 or tokens[clause.predicate].lemma.lower() == "remain":
        return False
    opener = word_at(tokens, span[0])
    if opener in word_class("prepositions of place"):
        return True
    if opener not in _TIME_PREPOSITIONS:
        return False
    if word_at(tokens, i) in word_class("times"):
        return True
    has_year = any(token.tag == "CD" and re.fullmatch(r"\d{4}", token.text) for token in inner)
    return has_year and len(inner) <= 5


def _is_movable_clause(tokens: Sequence[Token], span: Span) -> bool:
    """Return whether a span is a short finite clause that nothing limits."""
    before = word_at(tokens, span[0] - 1)
    if before in ("only", "even", "just", "and", "but", "not", "especially"):
        return False
    inner = tokens[span[0] : span[1] + 1]
    if len(inner) > 12 or word_at(tokens, span[0]) not in word_class("conjunctions of clauses"):
        return False
    return any(token.tag in _FINITE for token in inner)


def _exchanged_conjuncts(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the sentence with the first and the last conjunct exchanged, for each coordination.

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
        first = spans[0]
        last = spans[-1]
        new = exchange_phrases(text, tokens, first, last)
        article = word_at(tokens, first[0] - 1)
        fitting = indefinite_article(tokens[last[0]].text)
        wrong_article = article in ("a", "an") and article != fitting
        start, end = characters(tokens, (first[0], last[1]))
        # The content of a bracket would be left.
        bracket = "(" in text[start:end] + text[end:].lstrip()[:1]
        if new is not None and not wrong_article and not bracket:
            yield new


def _conjuncts(tokens: Sequence[Token], members: Sequence[int]) -> list[Span]:
    """Return the conjuncts as spans; none if there is more between them than commas and "and"."""
    kind = _CLASSES.get(tokens[members[0]].tag)
    if kind is None or len(members) > _MAX_CONJUNCTS:
        return []
    if any(_CLASSES.get(tokens[i].tag) != kind for i in members):
        return []
    phrases = [_conjunct(tokens, i, first=i == members[0], end=members[-1]) for i in members]
    spans = [phrase for phrase in phrases if phrase is not None]
    if len(spans) < len(phrases):
        return []
    first = spans[0]
    bare = [span[0] == span[1] for span in spans]
    if kind == "name":
        if len({span[1] - span[0] for span in spans}) > 1:
            # "Anna and Ben Smith"
            return []
        before = tokens[first[0] - 1].tag if first[0] > 0 else ""
        if len(spans) == 2 and before not in ("IN", "VBD", "VBZ", "VBP", "TO"):
            # It may be one name.
            return []
    elif not all(bare):
        opened = [tokens[span[0]].tag == "DT" for span in spans]
        if not bare[0] and all(bare[1:]) and opened[0] and first[1] - first[0] == 1:
            if word_at(tokens, first[0]) in ("a", "an"):
                return []
            # "the cats and dogs": they share the article.
            spans[0] = (members[0], members[0])
        elif not all(opened):
            # "old men and women"
            return []
    between = [tokens[before[1] + 1 : after[0]] for before, after in pairwise(spans)]
    plain = all(token.text == "," or token.relation == "cc" for gap in between for token in gap)
    closed = bool(between[-1]) and between[-1][-1].text.lower() in ("and", "or")
    if not plain or not closed or not _conjuncts_end(tokens, spans[-1][1], kind):
        return []
    return spans


def _conjunct(tokens: Sequence[Token], head: int, *, first: bool, end: int) -> Span | None:
    """Return a conjunct with its article, adjectives and parts of a name; None if it has more."""
    places = {head}
    for i in children(tokens, head):
        token = tokens[i]
        if token.relation in ("cc", "conj", "punct", "case", "cc:preconj", "cop"):
            continue
        shared = token.text.lower() in ("both", "either", "neither") or token.tag == "PRP$"
        if first and (i > end or token.relation in ("nsubj", "aux", "advmod") or shared):
            # It belongs to all of them, or to the clause.
            continue
        if token.relation not in ("det", "amod", "compound", "flat", "nummod"):
            return None
        places |= subtree(tokens, i)
    return as_span(places)


def _conjuncts_end(tokens: Sequence[Token], last: int, kind: str) -> bool:
    """Return whether the word after the conjuncts cannot belong to the last of them alone."""
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
    left_start, left_end = characters(tokens, left)
    right_start, right_end = characters(tokens, right)
    edges = (left_start - 1, left_end, right_start - 1, right_end)
    if any(text[at : at + 1] in ("-", "/") for at in edges):
        return None
    before = text[left_start:left_end]
    after = text[right_start:right_end]
    if before.lower() == after.lower():
        return None
    at_start = left[0] == 0
    before = recased(before, tokens[left[0]], was_first=at_start)
    after = recased(after, tokens[right[0]], was_first=False, is_first=at_start)
    return apply_edits(text, [(left_start, left_end, after), (right_start, right_end, before)])


_NOUNS = ("NN", "NNS", "NNP", "NNPS", "CD")
# Relations of the parts of a larger noun phrase.
_WITHIN = ("compound", "flat", "goeswith", "fixed", "nummod", "nn", "appos")
# The class within which a phrase can be swapped, by tag; all others are names.
_SWAPPED = {"NN": "singular nouns", "NNS": "plural nouns", "CD": "numbers"}
_ARGUMENTS = ("nsubj", "obj", "dobj", "iobj", "obl", "nmod", "pobj")


class PhraseSwap(GrammarView):
    """Exchange two noun phrases, names, numbers or adjectives: the same words with another meaning.

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
            weights = [weight for weight, _, _, _ in swaps]
            (drawn,) = rng.choices(range(len(swaps)), weights)
            _, rule, one, other = swaps.pop(drawn)
            swapped = exchange_phrases(text, tokens, one, other)
            if swapped is not None:
                return swapped, rule
        return None, "nothing to swap"


def _swaps(tokens: Sequence[Token]) -> Iterator[tuple[float, str, Span, Span]]:
    """Yield the weight, the rule and both phrases of every possible swap."""
    nouns = []
    for i, token in enumerate(tokens):
        is_noun = token.tag in _NOUNS and base_relation(token) not in _WITHIN
        if is_noun and any(character.isalnum() for character in token.text):
            nouns.append(i)
    for i, j in combinations(nouns, 2):
        kind = _SWAPPED.get(tokens[i].tag, "names")
        if _SWAPPED.get(tokens[j].tag, "names") != kind:
            continue
        if _coordinated(tokens, i, j) or _symmetric(tokens, i, j):
            continue
        one = noun_phrase(tokens, i)
        other = noun_phrase(tokens, j)
        if one is None or other is None:
            continue
        first = base_relation(tokens[i])
        second = base_relation(tokens[j])
        weight = 2.0 if first in _ARGUMENTS and second in _ARGUMENTS else 1.0
        if first == "nsubj" and second in ("obj", "dobj"):
            weight = 6.0
        if kind in ("names", "numbers"):
            weight *= 2.0
        yield weight, kind, one, other
    adjectives = [i for i, t in enumerate(tokens) if t.tag == "JJ" and t.relation == "amod"]
    for i, j in combinations(adjectives, 2):
        one_noun = tokens[i].head
        other_noun = tokens[j].head
        if one_noun == other_noun or _article(tokens, i) != _article(tokens, j):
            continue
        if not _coordinated(tokens, one_noun, other_noun):
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
    """Return whether two tokens are conjuncts or appositions of each other."""
    return _first_conjunct(tokens, i) == _first_conjunct(tokens, j)


def _symmetric(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Return whether a swap would keep the meaning: "A meets B", "A is B", "in A … in B"."""
    for subject, predicate in ((i, j), (j, i)):
        if tokens[subject].head == predicate and tokens[subject].relation == "nsubj":
            return _dependents(tokens, predicate, "cop") != ""
    head = tokens[i].head
    if head != tokens[j].head:
        return False
    if tokens[head].lemma.lower() in SYMMETRIC_VERBS:
        return True
    place = _dependents(tokens, i, "case")
    return place != "" and place == _dependents(tokens, j, "case")


def _dependents(tokens: Sequence[Token], head: int, relation: str) -> str:
    """Return the words that depend on a token by this relation."""
    dependents = children(tokens, head)
    return " ".join(word_at(tokens, i) for i in dependents if tokens[i].relation == relation)
