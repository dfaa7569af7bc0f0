"""Attributes as statements: "the dirty water of the lake" becomes "the water of the lake is dirty".

Raw text has few statements such as "is dirty", and most of them use the same few adjectives; as attributes nearly all
adjectives occur.
"""

from __future__ import annotations

from collections.abc import Sequence

from opencse.text.english.phrases import as_span, noun_phrase, subtree, text_of
from opencse.text.syntax.tokens import Token

_KEPT = frozenset("the this that these those his her its their our my your".split())
_DROPPED = frozenset("a an".split())
_MAX_OF = 4  # tokens of "of the lake" that are kept


def attribute_clause(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a sentence that states an attribute of a noun as its predicate.

    Args:
        text: The sentence.
        tokens: Its tokens.
        word: The adjective, in lower case.

    Returns:
        The statement, in the tense of the sentence; None if the word is not the attribute of a common noun.
    """
    for i, token in enumerate(tokens):
        if token.tag == "JJ" and token.relation == "amod" and token.text.lower() == word:
            subject = _subject(text, tokens, i)
            if subject is not None:
                past = any(t.tag == "VBD" for t in tokens)
                plural = tokens[token.head].tag == "NNS"
                verb = ("were" if plural else "was") if past else "are" if plural else "is"
                return f"{subject[:1].upper()}{subject[1:]} {verb} {word}."
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
    first = tokens[phrase[0]]
    words = [tokens[k].text for k in range(phrase[0], phrase[1] + 1) if k != i]
    if first.tag in ("DT", "PRP$"):
        article = first.text.lower()
        if article not in _KEPT | _DROPPED:
            return None  # "no", "every", "any" name no particular thing
        words = [article if article in _KEPT else "the", *words[1:]]
    else:
        words = ["the", *words]
    if not all(word.isalpha() for word in words):
        return None
    return " ".join([*words, *_of(text, tokens, head)])


def _of(text: str, tokens: Sequence[Token], head: int) -> list[str]:
    """Return the short phrase with "of" that follows a noun, if there is one."""
    for i, token in enumerate(tokens):
        if token.head == head and i > head and token.relation.startswith("nmod"):
            span = as_span(subtree(tokens, i))
            if span and span[0] == head + 1 and span[1] - span[0] < _MAX_OF and tokens[span[0]].text == "of":
                return [text_of(text, tokens, span)]
    return []
