"""Negation by antonym: one word that carries the statement is replaced by an antonym from WordNet."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from opencse.text.english.articles import article_edits
from opencse.text.english.clause import main_clause
from opencse.text.english.grammar_view import Rewrite
from opencse.text.english.lexicon import antonyms
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits, match_case

_POS = {"JJ": "ADJ", "RB": "ADV"} | dict.fromkeys(("VB", "VBZ", "VBP", "VBD", "VBN", "VBG"), "VERB")
_TOO_MANY_SENSES = frozenset("be have do go come get take give make let keep put say know".split())


def negate_by_antonym(text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
    """Replace a word by an antonym: the predicate if it has one, else a word that describes it.

    Args:
        text: The sentence.
        tokens: Its tokens.
        rng: Chooses among several antonyms of one word.

    Returns:
        The sentence, or None if no such word has an antonym, and the rule.
    """
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
        choices = antonyms().get((base, pos), ()) if base not in _TOO_MANY_SENSES else ()
        if choices:
            new = rng.choice(choices)
            new = inflect(new, token.tag) if pos == "VERB" else new
            edits: list[Edit] = [(token.start, token.end, match_case(new, token.text))]
            return apply_edits(text, [*edits, *article_edits(text, tokens, i, new)]), f"antonym {pos}"
    return None, "no antonym"


def _candidates(tokens: Sequence[Token], predicate: int) -> Iterator[int]:
    """Yield the predicate, its adverbs, and its complements' adjectives: the most important first."""
    yield predicate
    children = [i for i, token in enumerate(tokens) if token.head == predicate and i != predicate]
    for relations in (("acomp", "xcomp"), ("amod", "advmod"), ("attr", "obj", "dobj", "oprd")):
        for i in children:
            if tokens[i].relation in relations:
                if tokens[i].pos in ("ADJ", "ADV", "VERB") and relations[0] != "attr":
                    yield i
                yield from (j for j, t in enumerate(tokens) if t.head == i and t.relation == "amod" and t.pos == "ADJ")
