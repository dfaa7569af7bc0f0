"""Short statements from long sentences: the main clause alone, or an attribute as a predicate.

Raw text such as an encyclopedia's has few of them, and they show the effect of a single word. It has few predicates
such as "is dirty", too, and most use the same few adjectives; as attributes nearly all adjectives occur.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import Clause, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.parse import (
    MAX_TOKENS,
    as_span,
    base_relation,
    capitalised,
    children,
    noun_phrase,
    subtree,
    text_of,
)
from opencse.text.syntax import Token

_CUT = ("advcl", "parataxis", "acl", "relcl", "appos", "discourse", "dep", "list", "vocative")
_LOOSE = (";", ":", "-", "–", "—", '"', "“", "”", "(", ")", ".", "!", "?")
_KEPT = frozenset("the this that these those his her its their our my your".split())
_MAX_OF = 4  # tokens of "of the lake" that are kept


@dataclass(frozen=True, kw_only=True)
class MainClause(GrammarView):
    """Cut each sentence to its main clause, without its subordinate clauses, appositions and brackets.

    Null if nothing would be cut, or if the clause has fewer than three or more than fourteen tokens.

    Example:
        [build.clause]
        kind = "main_clause"

        >>> MainClause().preview("The shop opened early because people waited.")
        ['The shop opened early.']
    """

    kind: ClassVar[str] = "main_clause"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Cut one sentence."""
        if len(tokens) > MAX_TOKENS:
            return None, "too long"
        clause = main_clause(tokens)
        if clause is None or clause.subject is None or clause.finite is None:
            return None, "no finite verb"
        places = _kept_tokens(clause)
        if not {clause.subject, clause.finite, clause.predicate} <= set(places):
            return None, "broken"
        if not 3 <= len(places) <= 14:
            return None, "too short" if len(places) < 3 else "too long"
        glued = {i for i in places if i - 1 in places and tokens[i - 1].end == tokens[i].start}
        cut = "".join(tokens[i].text if i in glued else f" {tokens[i].text}" for i in places).lstrip()
        same = cut.rstrip(".").lower() == text.strip().rstrip(".").lower()
        return (None, "nothing to cut") if same else (f"{capitalised(cut)}.", "cut")


def _kept_tokens(clause: Clause) -> list[int]:
    """Return the tokens of the clause itself, without loose punctuation and loose conjunctions."""
    tokens = clause.tokens
    places = subtree(tokens, clause.predicate)
    for i in sorted(places - {clause.predicate}):
        other_clause = base_relation(tokens[i]) == "conj" and tokens[i].head == clause.predicate
        if base_relation(tokens[i]) in _CUT or "relcl" in tokens[i].relation or other_clause:
            places -= subtree(tokens, i)
    joined = {tokens[i].head for i in places if tokens[i].relation == "conj"}
    # "cc" depends on the next conjunct (Universal Dependencies) or on the previous one (spaCy's own models)
    loose = {i for i in places if tokens[i].relation == "cc" and tokens[i].head not in joined}
    places -= {i for i in loose if tokens[tokens[i].head].relation != "conj"}
    places = {i for i in places if tokens[i].text not in _LOOSE}
    return [i for i in sorted(places) if tokens[i].text != "," or {i - 1, i + 1} <= places]  # no comma at a cut


def attribute_clause(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a sentence that states an attribute of a noun: "the dirty water" becomes "The water is dirty.".

    The statement has the tense of the sentence. None if the word, in lower case, is not the attribute of a common noun.
    """
    for i, token in enumerate(tokens):
        if token.tag == "JJ" and token.relation == "amod" and token.text.lower() == word:
            subject = _subject(text, tokens, i)
            if subject is not None:
                past = any(t.tag == "VBD" for t in tokens)
                plural = tokens[token.head].tag == "NNS"
                verb = ("were" if plural else "was") if past else "are" if plural else "is"
                return f"{capitalised(subject)} {verb} {word}."
    return None


def is_predicate(tokens: Sequence[Token], word: str) -> bool:
    """Whether an adjective is the predicate of some clause ("is dirty")."""
    return any(tokens[t.head].text.lower() == word for t in tokens if t.relation == "cop")


def _subject(text: str, tokens: Sequence[Token], i: int) -> str | None:
    """Return the noun phrase around an adjective, without it and with a definite article."""
    head = tokens[i].head
    phrase = noun_phrase(tokens, head) if head > i and tokens[head].tag in ("NN", "NNS") else None
    if phrase is None or not phrase[0] <= i < phrase[1] or any(t.head == i for t in tokens):
        return None
    words = [tokens[k].text for k in range(phrase[0], phrase[1] + 1) if k != i]
    article = "the"
    if tokens[phrase[0]].tag in ("DT", "PRP$"):
        word = words.pop(0).lower()
        if word not in (*_KEPT, "a", "an"):
            return None  # "no", "every", "any" name no particular thing
        article = word if word in _KEPT else "the"
    if not all(word.isalpha() for word in words):
        return None
    for k in children(tokens, head, "nmod"):  # "of the lake"
        span = as_span(subtree(tokens, k)) if k > head else None
        if span and span[0] == head + 1 and span[1] - span[0] < _MAX_OF and tokens[span[0]].text == "of":
            words.append(text_of(text, tokens, span))
            break
    return " ".join([article, *words])
