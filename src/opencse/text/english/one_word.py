"""Contradictions by one word: its opposite, or a negative word other than "not" ("nobody")."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.text.english.clause import BE, FINITE, NEGATIVE, NOT, SENTENTIAL, Clause, main_clause
from opencse.text.english.lexicon import (
    OPPOSITE_TABLES,
    base_form,
    inflect,
    lexicon_rows,
    word_class,
)
from opencse.text.english.opposites import Opposite, find_opposites, opposite_edits
from opencse.text.english.parse import (
    GrammarView,
    Rewrite,
    base_relation,
    children,
    is_question,
    replaced,
    word_at,
)
from opencse.text.syntax import Edit, Token, apply_edits, match_case

_PREDICATES = (("ADJ", "JJ"), ("NOUN", "NN"), ("NOUN", "NNS"))
_ATTRIBUTES = ("amod", "compound", "nummod", "appos")
# Those that "n't" can follow.
_COPULAS = ("is", "are", "was", "were")
_WEIGHTS = {"ADJ": 2, "ADV": 3, "NOUN": 1, "VERB": 4, "ADP": 1, "PART": 3, "DEGREE": 4}


@dataclass(frozen=True, kw_only=True)
class AntonymSwap(GrammarView):
    """Replace one word by its opposite: a contradiction that looks like its source.

    Null if no word has an opposite in this context, or if the sentence is negative already.

    Attributes:
        predicate_first: Prefer a predicate adjective ("is safe"): the negation of its opposite
            ("is not dangerous") is a paraphrase, which `negated_antonym` builds.

    Example:
        [build.antonym]
        kind = "antonym_swap"
        predicate_first = true

        >>> AntonymSwap().preview("The old drug is safe.")
        ['The new drug is safe.']
    """

    kind = "antonym_swap"
    tables = OPPOSITE_TABLES

    predicate_first: bool = False

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words that may be replaced, with their opposites."""
        return list(find_opposites(text, tokens))

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Replace one word, drawn by the weight of its part of speech."""
        if any(token.text.lower() in NEGATIVE - {"never", "rarely", "seldom"} for token in tokens):
            return None, "negative words"
        opposites = self.candidates(text, tokens)
        if not opposites:
            return None, "no antonym"
        if self.predicate_first:
            with_copula = [o for o in opposites if find_copula(tokens, o) is not None]
            opposites = with_copula or opposites
        weights = [_WEIGHTS[opposite.pos] for opposite in opposites]
        (chosen,) = rng.choices(opposites, weights)
        return apply_edits(text, opposite_edits(text, tokens, chosen)), f"antonym {chosen.pos}"


def find_copula(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the form of be that links an adjective or a noun to its subject.

    None if the word is no such predicate, if anything but "not", an adverb or an article stands
    between, or if the word and its opposite leave a third possibility.
    """
    place = opposite.place
    head = _described(tokens, opposite)
    if head is None or any(shares_predicate(tokens, i) for i in (place, head)):
        return None
    following = tokens[place + 1].tag if place + 1 < len(tokens) else ""
    if word_at(tokens, place) in word_class("with preposition") and following in ("IN", "TO"):
        return None
    copula = place - 1
    if head != place or opposite.pos == "NOUN":
        if word_at(tokens, copula) in ("a", "an"):
            copula -= 1
        elif tokens[head].tag != "NNS":
            return None
    while copula > 0 and word_at(tokens, copula) in (*NOT, *SENTENTIAL):
        copula -= 1
    if not _links(tokens, copula, head):
        return None
    return copula


def shares_predicate(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a word is joined to another without its own subject: "safe and clean"."""
    for k in children(tokens, i):
        if tokens[k].relation != "conj":
            continue
        if not any(t.head == k and t.relation.startswith("nsubj") for t in tokens):
            return True
    return False


def _described(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the predicate: the word, or the noun that an adjective is the only attribute of."""
    place = opposite.place
    word = tokens[place]
    if not opposite.complementary or (opposite.pos, word.tag) not in _PREDICATES:
        return None
    if opposite.pos == "NOUN":
        if any(t.head == place and base_relation(t) in _ATTRIBUTES for t in tokens):
            return None
        return place
    if word.relation != "amod":
        return place
    head = word.head
    if tokens[head].tag not in ("NN", "NNS") or head != place + 1:
        return None
    others = [token.relation for token in tokens if token.head == head and token is not word]
    if {"nmod:poss", *_ATTRIBUTES}.intersection(others):
        return None
    return head


def _links(tokens: Sequence[Token], copula: int, head: int) -> bool:
    """Return whether a token links a predicate, in a statement without other negative words."""
    if copula <= 0 or word_at(tokens, copula) not in _COPULAS:
        return False
    if any(token.text == "?" for token in tokens):
        return False
    depends = tokens[copula].head == head and tokens[copula].relation == "cop"
    governs = tokens[head].head == copula and tokens[head].relation in ("acomp", "attr")
    if not depends and not governs:
        return False
    words = {token.text.lower() for token in tokens if token.head in (head, copula)}
    return not words & (NEGATIVE - set(NOT))


EditsAndRule = tuple[list[Edit], str]
"""The edits of one possible change, and its rule."""


def _negative_words(wanted: str) -> dict[str, str]:
    return {word: new for kind, word, new in lexicon_rows("negative_words") if kind == wanted}


_PRONOUNS = _negative_words("pronoun")
_ADVERBS = _negative_words("adverb")
_OPPOSITE = _negative_words("opposite")
_DO = ("do", "does", "did")
# States, and what happens to the subject: "failed to own" is no contradiction of "owned".
_STATES = word_class("states")


class NegativeWord(GrammarView):
    """Contradict a sentence by a negative word other than "not", or by undoing such a word.

    The rules: "no" or "none of" with the subject, "nobody", "never", "rarely", "no longer", "failed
    to", "no" with the object; with a negative word in the sentence, its opposite ("always" for
    "never"). Null if none of them fits.

    Example:
        [build.negative_word]
        kind = "negative_word"

        >>> NegativeWord().preview("Every nurse smiled.")
        ['No nurse smiled.']
    """

    kind = "negative_word"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible edits, drawn at random."""
        choices = possible_edits(text, tokens)
        if not choices:
            return None, "no place for it"
        edits, rule = rng.choice(choices)
        return apply_edits(text, edits), rule


def possible_edits(text: str, tokens: Sequence[Token]) -> list[EditsAndRule]:
    """Return every change of a sentence that contradicts it by a negative word."""
    negative = [i for i in range(len(tokens)) if word_at(tokens, i) in NEGATIVE]
    if negative:
        if len(negative) > 1:
            return []
        return list(_undo(tokens, negative[0]))
    clause = main_clause(tokens)
    if clause is None or clause.finite is None or clause.subject is None:
        return []
    if clause.subject > clause.finite or is_question(text):
        return []
    subject = list(_subject(tokens, clause.subject))
    if subject:
        # With another change, "every nurse never …" would be ambiguous.
        return subject
    edits: list[EditsAndRule] = []
    for token in tokens:
        new = _ADVERBS.get(token.text.lower())
        if new is not None and token.head in (clause.predicate, clause.finite):
            edits.append(([replaced(token, new)], new))
    edits += _verb(clause)
    edits += _object(tokens, clause.predicate)
    return edits


def _undo(tokens: Sequence[Token], place: int) -> Iterator[EditsAndRule]:
    """Replace a negative word by its opposite."""
    word = tokens[place]
    low = word_at(tokens, place)
    following = word_at(tokens, place + 1)
    if low == "no" and following in ("longer", "one", "more", "doubt", "matter", "."):
        if following in ("longer", "one"):
            new = "still" if following == "longer" else "someone"
            yield [(word.start, tokens[place + 1].end, match_case(new, word.text))], new
        return
    # "never-ending"
    joined = following == "-" and tokens[place + 1].start == word.end
    if low in _OPPOSITE and not joined and (low != "no" or word.relation == "det"):
        yield [replaced(word, _OPPOSITE[low])], _OPPOSITE[low]


def _subject(tokens: Sequence[Token], subject: int) -> Iterator[EditsAndRule]:
    """Negate the subject: "no nurse", "none of the nurses", "nobody"."""
    new = _PRONOUNS.get(word_at(tokens, subject))
    if new:
        yield [replaced(tokens[subject], new)], new
    for i in children(tokens, subject):
        quantifier = word_at(tokens, i)
        following = word_at(tokens, i + 1)
        if i > subject or quantifier not in ("every", "each", "all", "some"):
            continue
        if following == "of":
            yield [replaced(tokens[i], "none")], "none of"
        elif quantifier == "all" and tokens[i + 1].tag in ("DT", "PRP$"):
            yield [replaced(tokens[i], "none of")], "none of"
        elif not following[0].isdigit():
            yield [replaced(tokens[i], "no")], "no"


def _verb(clause: Clause) -> Iterator[EditsAndRule]:
    """Put "never", "no longer" or "fail to" before the verb, or after its auxiliary."""
    assert clause.finite is not None
    tokens = clause.tokens
    finite = tokens[clause.finite]
    form = finite.text.lower()
    dependents = children(tokens, clause.predicate)
    if form in _DO or any(tokens[i].text.lower() in _ADVERBS for i in dependents):
        return
    present = clause.tag in ("VBZ", "VBP")
    if clause.auxiliary:
        if not form[0].isalpha():
            # "'s"
            return
        yield [(finite.end, finite.end, " never")], "never"
        if form in BE and not children(tokens, clause.predicate, "aux"):
            yield [(finite.end, finite.end, " no longer")], "no longer"
        return
    if clause.tag not in FINITE or not finite.text.islower():
        return
    yield [(finite.start, finite.start, "never ")], "never"
    if present:
        yield [(finite.start, finite.start, "no longer ")], "no longer"
    base = base_form(form, clause.tag, finite.lemma)
    certain = inflect(base, clause.tag) == form and base not in ("have", "be")
    if certain and base not in _STATES and not clause.shared_verbs():
        yield [(finite.start, finite.end, f"{inflect('fail', clause.tag)} to {base}")], "fail to"


def _object(tokens: Sequence[Token], predicate: int) -> Iterator[EditsAndRule]:
    """Put "no" before the object: "has no car"."""
    for i in children(tokens, predicate, "obj", "dobj"):
        if i < predicate or tokens[i].tag not in ("NN", "NNS"):
            continue
        before = [tokens[k] for k in children(tokens, i) if k < i]
        determiners = []
        for token in before:
            if token.tag in ("DT", "PRP$", "CD", "WDT") or token.pos == "NUM":
                determiners.append(token)
        # "no Tom's cars" and "no many cars" are not English.
        owned = any(token.relation.startswith(("nmod", "poss", "advmod")) for token in before)
        words = {token.text.lower() for token in before}
        counted = words & word_class("never after no")
        if not determiners:
            if tokens[i].tag == "NNS" and not owned and not counted:
                first = before[0] if before else tokens[i]
                yield [(first.start, first.start, "no ")], "no"
        elif len(determiners) == 1:
            (determiner,) = determiners
            if determiner.text.lower() in ("a", "an", "some"):
                yield [(determiner.start, determiner.end, "no")], "no"
