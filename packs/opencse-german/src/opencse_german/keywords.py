"""Keywords of a German sentence, as people type them into a search box."""

from __future__ import annotations

import random
from collections.abc import Sequence

from opencse.text.english.parse import Rewrite
from opencse.text.english.questions import Keywords
from opencse.text.syntax import Token
from opencse_german import words as w

_KEPT = frozenset("nicht kein keine keinen ohne nie".split())
_FEWEST = 3
_MOST = 7


class GermanKeywords(Keywords):
    """Keep nouns, numbers, participles and main verbs, with the negative words.

    Three words are enough, as German writes compounds as one word.
    """

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Choose the words of one sentence."""
        ranked = []
        for i in range(len(tokens)):
            if _is_content(tokens, i):
                # A random number orders the words of one rank.
                ranked.append((_rank(tokens, i), rng.random(), i))
        ranked.sort()
        if len(ranked) < _FEWEST:
            return None, "few content words"
        wanted = rng.randint(_FEWEST, min(_MOST, len(ranked)))
        chosen = {i for _, _, i in ranked[:wanted]}
        for i, token in enumerate(tokens):
            if token.text.lower() in _KEPT:
                chosen.add(i)
        return " ".join(tokens[i].text for i in sorted(chosen)), f"{len(chosen)} words"


def _is_content(tokens: Sequence[Token], i: int) -> bool:
    word = tokens[i].text
    if not any(character.isalnum() for character in word):
        return False
    if word.lower() in w.ORDINARY or word in w.MANNER_ADVERBS:
        return False
    return len(word) > 1 or word.isdigit()


def _rank(tokens: Sequence[Token], i: int) -> int:
    """Return how early a word is chosen: nouns and numbers first, then verbs, then the rest."""
    word = tokens[i].text
    if w.is_noun(word) or w.is_number(word):
        return 0
    # The main verb stands at the end, before the full stop.
    if w.is_participle(word) or i == len(tokens) - 2:
        return 1
    return 2
