"""Pairs about roles: the same roles in other words, and the same words in other roles."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.grammar_columns import GrammarColumns
from opencse.text.english.grammar_view import Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, LexiconTable
from opencse.text.english.passive import other_voice
from opencse.text.english.role_patterns import RolePair, role_pairs
from opencse.text.english.role_swap import exchanged_roles
from opencse.text.english.transitive import transitives
from opencse.text.syntax.tokens import Token


@dataclass(frozen=True, kw_only=True)
class RolePairs(GrammarColumns):
    """Build two views of one clause: the same roles in other words, and its roles exchanged.

    The columns of `[build.NAME]` are, for the sentence "The lawyer sued the baker.":

    - `NAME_kept`: "The baker was sued by the lawyer." It says the same. Null if no rule keeps the meaning.
    - `NAME_exchanged`: "The baker sued the lawyer." It says something else, with nearly the words of the sentence.

    Besides the voice, the patterns are comparisons ("Anna is taller than Ben"), the order of two clauses ("before",
    "after", "because"), directions ("from Rome to Oslo") and recipients ("Anna sent Ben a card"). Both are null if
    none applies.

    Attributes:
        alike: Exchange subject and object only if both can act: names, personal pronouns, people and their groups.

    Example:
        [build.roles]
        kind = "role_pair"
        alike = false

        [views]
        exchanged = { text = "roles_exchanged", optional = true }
    """

    kind: ClassVar[str] = "role_pair"
    parts: ClassVar[tuple[str, ...]] = ("kept", "exchanged")
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return both views of one pattern, drawn at random; one with a paraphrase if there is any."""
        found = [*role_pairs(text, tokens), *self._voices(text, tokens)]
        if not found:
            return [(None, "no roles")] * len(self.parts)
        kept, exchanged, rule = rng.choice([each for each in found if each[0] is not None] or found)
        return [(kept, rule if kept else "no paraphrase"), (exchanged, rule)]

    def _voices(self, text: str, tokens: Sequence[Token]) -> list[RolePair]:
        """Return the other voice and the exchanged roles of each clause with subject and object."""
        pairs: list[RolePair] = []
        for clause in transitives(text, tokens):
            exchanged = exchanged_roles(text, tokens, clause, alike=self.alike)[0]
            if exchanged is not None:
                pairs.append((other_voice(text, tokens, clause)[0], exchanged, "voice"))
        return pairs
