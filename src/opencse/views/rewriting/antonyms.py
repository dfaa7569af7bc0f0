"""Negation by antonym: one word that carries the statement replaced by its opposite."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import base_form, inflect
from opencse.views.constructor import bundle_digest
from opencse.views.rewriting.clause import main_clause
from opencse.views.rewriting.edits import Edit, apply, like

_POS = {
    "JJ": "ADJ",
    "RB": "ADV",
    "VB": "VERB",
    "VBZ": "VERB",
    "VBP": "VERB",
    "VBD": "VERB",
    "VBN": "VERB",
    "VBG": "VERB",
}
_NOT_OPPOSED = frozenset("be have do go come get take give make let keep put say know".split())  # too many senses


def lexicon_path() -> Path:
    """Return the bundled list of antonyms."""
    return Path(__file__).parents[2] / "assets" / "lexicon" / "antonyms.tsv"


@cache
def _lexicon() -> dict[tuple[str, str], tuple[str, ...]]:
    table: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in lexicon_path().read_text(encoding="utf-8").split("\n")[1:]:
        if line:
            word, antonym, pos = line.split("\t")
            table[word, pos] = (*table.get((word, pos), ()), antonym)
    return table


class Antonyms:
    """The bundled antonyms, ready to negate sentences."""

    def __init__(self) -> None:
        self.digest = bundle_digest(lexicon_path().read_bytes())

    def negate(self, text: str, tokens: Sequence[Token], chance: random.Random) -> tuple[str | None, str]:
        """Replace a word by an antonym: the predicate first, then what describes it; None where there is none.

        Args:
            text: The sentence.
            tokens: Its tokens.
            chance: Chooses where a word has several antonyms.
        """
        if not tokens:
            return None, "empty"
        clause = main_clause(tokens)
        if clause is None or clause.subject is None:
            return None, "no finite verb"
        if clause.negators or clause.negatives:
            return None, "negative already"
        for i in _candidates(tokens, clause.predicate):
            token = tokens[i]
            pos = _POS.get(token.tag, "")
            base = base_form(token.text, token.tag, token.lemma) if pos == "VERB" else token.text.lower()
            if pos == "VERB" and token.tag == "VBG":
                base = token.lemma.lower()
            choices = _lexicon().get((base, pos), ()) if base not in _NOT_OPPOSED else ()
            if choices:
                new = chance.choice(choices)
                new = inflect(new, token.tag) if pos == "VERB" else new
                edits: list[Edit] = [(token.start, token.end, like(new, token.text)), *_article(text, tokens, i, new)]
                return apply(text, edits), f"antonym {pos}"
        return None, "no antonym"


def _candidates(tokens: Sequence[Token], predicate: int) -> Iterator[int]:
    """Yield the predicate, its adverbs and complements' adjectives, in the order in which they carry the statement."""
    yield predicate
    children = [i for i, token in enumerate(tokens) if token.head == predicate and i != predicate]
    for relations in (("acomp", "xcomp"), ("amod", "advmod"), ("attr", "obj", "dobj", "oprd")):
        for i in children:
            if tokens[i].relation in relations:
                if tokens[i].pos in ("ADJ", "ADV", "VERB") and relations[0] != "attr":
                    yield i
                yield from (j for j, t in enumerate(tokens) if t.head == i and t.relation == "amod" and t.pos == "ADJ")


def _article(text: str, tokens: Sequence[Token], place: int, new: str) -> list[Edit]:
    """Mend "a" or "an" before a replaced word."""
    before = tokens[place - 1] if place else None
    if before is None or before.text.lower() not in ("a", "an"):
        return []
    article = "an" if new[:1].lower() in "aeiou" else "a"
    return [(before.start, before.end, like(article, before.text))] if article != before.text.lower() else []
