"""Paraphrases by word order: an adverbial moved ("In 1990, he left", "He left in 1990"), or conjuncts exchanged."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from opencse.text.english.articles import indefinite_article
from opencse.text.english.clause import Clause, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import word_class
from opencse.text.english.phrases import Span, as_span, exchange_phrases, subtree, text_of
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import decapitalise

_CLASSES = {"NN": "noun", "NNS": "noun", "NNP": "name", "NNPS": "name", "JJ": "adjective"}
_PARTS = ("det", "amod", "compound", "flat", "nummod")
_SHARED = ("both", "either", "neither")
# Words that refer to the order.
_ORDERED = frozenset("respectively former latter first second last then vice".split())
_MAX_CONJUNCTS = 6


def exchanged_conjuncts(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the sentence with the first and the last of its conjuncts exchanged, for each coordination.

    Conjuncts are nouns, names or adjectives. Those that may share a modifier, and sentences that refer to the order
    ("respectively"), are left out.
    """
    if any(token.text.lower() in _ORDERED for token in tokens):
        return
    conjuncts: dict[int, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.relation == "conj" and token.head < i:
            conjuncts.setdefault(token.head, [token.head]).append(i)
    for members in conjuncts.values():
        spans = _spans(tokens, members)
        new = exchange_phrases(text, tokens, spans[0], spans[-1]) if spans else None
        if new is None or spans is None or not _article_fits(tokens, spans[0][0], spans[-1][0]):
            continue
        start, end = tokens[spans[0][0]].start, tokens[spans[-1][1]].end
        if "(" not in text[start:end] + text[end:].lstrip()[:1]:  # else its content would stay behind
            yield new


def _spans(tokens: Sequence[Token], members: Sequence[int]) -> list[Span] | None:
    """Return the conjuncts as spans with only commas and the conjunction between them; None if there is more."""
    kind = _CLASSES.get(tokens[members[0]].tag)
    if kind is None or len(members) > _MAX_CONJUNCTS or any(_CLASSES.get(tokens[i].tag) != kind for i in members):
        return None
    phrases = [_phrase(tokens, i, first=i == members[0], end=members[-1]) for i in members]
    if any(phrase is None for phrase in phrases):
        return None
    spans = [phrase for phrase in phrases if phrase is not None]
    bare = [span[0] == span[1] for span in spans]
    if not all(bare) and kind != "name":
        opened = [tokens[span[0]].tag == "DT" for span in spans]
        if not bare[0] and all(bare[1:]) and opened[0] and spans[0][1] - spans[0][0] == 1:
            if tokens[spans[0][0]].text.lower() in ("a", "an"):
                return None
            spans[0] = (members[0], members[0])  # "the cats and dogs": they share the article
        elif not all(opened):
            return None  # "old men and women"
    if kind == "name" and len({span[1] - span[0] for span in spans}) > 1:
        return None  # "Anna and Ben Smith"
    if kind == "name" and len(spans) == 2 and not _before_names(tokens, spans[0][0]):
        return None  # it may be one name
    between = [range(one[1] + 1, other[0]) for one, other in pairwise(spans)]
    plain = all(tokens[i].text == "," or tokens[i].relation == "cc" for gap in between for i in gap)
    closed = bool(between[-1]) and tokens[between[-1][-1]].text.lower() in ("and", "or")
    return spans if plain and closed and _ends(tokens, spans[-1][1], kind) else None


def _phrase(tokens: Sequence[Token], head: int, *, first: bool, end: int) -> Span | None:
    """Return a conjunct with its article, its adjectives and the parts of a name; None if it has other dependents."""
    places = {head}
    for i, token in enumerate(tokens):
        if token.head != head or i == head or token.relation in ("cc", "conj", "punct", "case", "cc:preconj", "cop"):
            continue
        if first and (i > end or token.relation in ("nsubj", "aux", "advmod") or _shared(token)):
            continue  # it belongs to all of them, or to the clause
        if token.relation not in _PARTS:
            return None
        places |= subtree(tokens, i)
    return as_span(places)


def _shared(token: Token) -> bool:
    """Whether a word before the first conjunct belongs to all of them: "both", "their"."""
    return token.text.lower() in _SHARED or token.tag == "PRP$"


def _before_names(tokens: Sequence[Token], first: int) -> bool:
    """Whether a preposition or a verb stands before the first name, so that both names are not one."""
    return first > 0 and tokens[first - 1].tag in ("IN", "VBD", "VBZ", "VBP", "TO")


def _article_fits(tokens: Sequence[Token], old: int, new: int) -> bool:
    """Whether an article before the first conjunct stays correct before the last one."""
    before = tokens[old - 1].text.lower() if old else ""
    return before not in ("a", "an") or before == indefinite_article(tokens[new].text)


def _ends(tokens: Sequence[Token], last: int, kind: str) -> bool:
    """Whether the word after the conjuncts cannot belong to the last of them alone."""
    if last + 1 >= len(tokens):
        return True
    after = tokens[last + 1]
    if after.tag in ("NN", "NNS"):
        return kind == "adjective"
    apart = after.text.lower() != "of" and not last - 3 <= tokens[after.head].head <= last
    return after.tag in (".", ",", "VBD", "VBZ", "VBP", "MD", "RB", "TO", "WDT", "CC") or (after.tag == "IN" and apart)


_TIME_NOUNS = word_class("times")
_TIME_PREPOSITIONS = ("after", "before", "since", "until", "by", "from", "despite", "under")  # if a time follows
_PLACE_PREPOSITIONS = word_class("prepositions of place")
_CONJUNCTIONS = word_class("conjunctions of clauses")
_OTHER_CLAUSES = ("acl", "relcl", "ccomp", "parataxis", "appos", "advcl", "conj", "dep", "list", "xcomp", "csubj")
_MARKS = (";", ":", "(", '"', "“", "–", "—")
_MAX_TOKENS = 24  # of a sentence that is reordered
_MAX_FRONT = 12  # tokens of an adverbial that moves behind the subject


@dataclass(frozen=True, kw_only=True)
class Reordering(GrammarView):
    """Move an adverbial to the front, behind the subject or to the end, or exchange conjuncts: the same meaning.

    Null if the sentence is longer than 24 tokens, or has nothing that can be moved safely.

    Example:
        [build.reordered]
        kind = "reordering"
    """

    kind: ClassVar[str] = "reordering"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible moves or exchanges, drawn at random."""
        clause = main_clause(tokens)
        moves = (_to_end, _to_front, _behind_subject)
        moved = [result for move in moves if (result := move(text, clause)) is not None] if clause else []
        exchanged: list[Rewrite] = [(new, "turned") for new in exchanged_conjuncts(text, tokens)]
        groups = [group for group in (moved, exchanged) if group]
        return rng.choice(rng.choice(groups)) if groups else (None, "nothing to move")


def _is_one_clause(clause: Clause, without: set[int]) -> bool:
    """Whether the rest of the sentence is one plain clause, so that an adverbial at its end belongs to it."""
    tokens = clause.tokens
    if len(tokens) > _MAX_TOKENS or tokens[-1].text != "." or clause.subject is None or clause.finite is None:
        return False
    rest = [t for i, t in enumerate(tokens[:-1]) if i not in without]
    plain = not any(t.relation.split(":")[0] in _OTHER_CLAUSES or "relcl" in t.relation for t in rest)
    return plain and not any(t.text in (*_MARKS, ",") for t in rest)


def _to_end(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, he left." into "He left in 1990."."""
    tokens = clause.tokens
    span = _adverbial(clause, first=0)
    if span is None or span[1] + 2 >= len(tokens):
        return None
    start = span[1] + 1
    places = set(range(span[0], span[1] + 1))
    if tokens[start].text == ",":
        places.add(start)
        start += 1
    elif tokens[span[0]].tag == "WRB" or span[1] - span[0] > 3:
        return None  # no comma, so the phrase may end elsewhere
    if start != clause.subject and start not in subtree(tokens, clause.subject or 0):
        return None  # inversion, or another adverbial before the subject
    if not _is_one_clause(clause, places) or tokens[start].text.lower() in ("this", "these", "there"):
        return None
    rest = text[tokens[start].start : tokens[-1].start].rstrip()
    moved = decapitalise(text_of(text, tokens, span)) if tokens[0].pos != "PROPN" else text_of(text, tokens, span)
    return f"{rest[:1].upper()}{rest[1:]} {moved}{text[tokens[-1].start :]}", "to the end"


def _to_front(text: str, clause: Clause) -> Rewrite | None:
    """Turn "He left in 1990." into "In 1990, he left."."""
    tokens = clause.tokens
    span = _adverbial(clause, first=None)
    if span is None or span[0] < 2 or clause.subject is None or clause.finite is None:
        return None
    before = tokens[span[0] - 1]
    places = set(range(span[0], span[1] + 1)) | ({span[0] - 1} if before.text == "," else set())
    opening = tokens[0]
    safe_capital = opening.tag in ("DT", "PRP", "PRP$", "NNP", "NNPS", "CD", "NNS")
    if not _is_one_clause(clause, places) or not safe_capital or min(subtree(tokens, clause.subject)) != 0:
        return None
    end = tokens[span[0] - 2].end if before.text == "," else before.end
    rest = text[opening.start : end]
    keeps_capital = opening.pos == "PROPN" or opening.tag in ("NNP", "NNPS") or opening.text == "I"
    moved = text_of(text, tokens, span)
    return f"{moved[:1].upper()}{moved[1:]}, {rest if keeps_capital else decapitalise(rest)}.", "to the front"


def _behind_subject(text: str, clause: Clause) -> Rewrite | None:
    """Turn "In 1990, the king left." into "The king, in 1990, left."."""
    tokens, subject = clause.tokens, clause.subject
    if subject is None or tokens[subject].relation.startswith("expl") or tokens[subject].tag in ("PRP", "EX", "DT"):
        return None
    whole = as_span(subtree(tokens, subject))
    if whole is None or whole[0] < 3 or tokens[whole[0] - 1].text != "," or whole[1] + 1 >= len(tokens):
        return None
    front = (0, whole[0] - 2)
    opener, verb = tokens[: front[1] + 1], tokens[whole[1] + 1]
    heads = [t for t in opener if t.head > front[1]]
    if len(heads) != 1 or heads[0].head != clause.predicate or heads[0].relation not in ("obl", "advcl"):
        return None
    if any(t.text in (*_MARKS, ",") for t in [*opener, *tokens[whole[0] : whole[1] + 1]]):
        return None
    if len(opener) > _MAX_FRONT or verb.tag not in ("VBD", "VBZ", "VBP", "MD") or not verb.text.isalpha():
        return None
    if any(t.tag in ("PRP", "PRP$") for t in opener):
        return None  # "In his youth, the king …": the pronoun would refer to something else
    opening, named = text_of(text, tokens, front), text_of(text, tokens, whole)
    opening = opening if tokens[0].pos == "PROPN" else decapitalise(opening)
    return f"{named[:1].upper()}{named[1:]}, {opening},{text[tokens[whole[1]].end :]}", "behind the subject"


def _adverbial(clause: Clause, first: int | None) -> Span | None:
    """Return the adverbial (of time, of place, or a clause) that opens the sentence (`first=0`) or closes it (None)."""
    tokens = clause.tokens
    for i in clause.children(clause.predicate):
        relation = tokens[i].relation.split(":")[0]
        if relation not in ("obl", "advcl") or tokens[i].relation == "obl:agent":
            continue
        span = as_span(subtree(tokens, i) - ({len(tokens) - 1} if first is None else set()) or {i})
        if span is not None and tokens[span[1]].text == ",":
            span = (span[0], span[1] - 1)
        if span is None or (span[0] != 0 if first == 0 else span[1] != len(tokens) - 2):
            continue
        opener, inner = tokens[span[0]].text.lower(), tokens[span[0] : span[1] + 1]
        if any(t.text in (",", ";", ":", "(", '"') for t in inner):
            continue
        known = opener in _PLACE_PREPOSITIONS or (opener in _TIME_PREPOSITIONS and _about_time(inner, tokens[i]))
        if relation == "obl" and known and len(inner) <= 8 and tokens[clause.predicate].lemma.lower() != "remain":
            return span
        finite = any(t.tag in ("VBD", "VBZ", "VBP", "MD") for t in inner)
        if span[0] and tokens[span[0] - 1].text.lower() in ("only", "even", "just", "and", "but", "not", "especially"):
            continue
        if relation == "advcl" and opener in _CONJUNCTIONS and finite and len(inner) <= 12:
            return span
    return None


def _about_time(phrase: Sequence[Token], noun: Token) -> bool:
    """Whether a phrase names a time: its noun does, or it is short and has a year."""
    year = any(t.tag == "CD" and t.text.isdigit() and len(t.text) == 4 for t in phrase) and len(phrase) <= 5
    return noun.text.lower() in _TIME_NOUNS or year
