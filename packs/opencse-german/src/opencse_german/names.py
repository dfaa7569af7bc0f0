"""German contradictions by name: another month, city or country, where one excludes another."""

from __future__ import annotations

import random
from collections.abc import Sequence

from opencse.text.english.claims import EntitySwap
from opencse.text.english.parse import Rewrite
from opencse.text.syntax import Token, apply_edits
from opencse_german import words as w
from opencse_german.clause import main_clause
from opencse_german.events import at_one_place, in_event
from opencse_german.lexicon import NAMES, german_names

_LATE = ("29.", "30.", "31.")


class GermanEntitySwap(EntitySwap):
    """Change the month or weekday of an event that happens once, or the city or country where one thing is."""

    tables = (NAMES,)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change one name."""
        if any(token.text.lower() in w.NEGATIVES | w.VAGUE for token in tokens):
            return None, "negative words"
        names = self.candidates(text, tokens)
        if not names:
            return None, "no name"
        i, kind = rng.choice(names)
        new = rng.choice(self.replacements(text, tokens, i, kind))
        return apply_edits(text, [(tokens[i].start, tokens[i].end, new)]), kind

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
        """Return the places and kinds of the names that may be changed."""
        clause = main_clause(tokens)
        places = []
        for i, token in enumerate(tokens):
            kind = german_names().get(token.text)
            if kind in ("city", "country") and i and at_one_place(clause, i):
                places.append((i, kind))
            elif kind in ("month", "weekday") and i and in_event(clause):
                dated = (
                    tokens[i - 1].text[:-1].isdigit()
                    if kind == "month"
                    else tokens[i - 1].text == "am"
                )
                places += [(i, kind)] if dated else []
        return places

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the other names of a kind that the sentence does not have."""
        others = [
            name for name, other in german_names().items() if other == kind and name not in text
        ]
        if kind == "month" and tokens[place - 1].text in _LATE:
            return [
                name
                for name in others
                if name in ("Januar", "März", "Mai", "Juli", "August", "Oktober", "Dezember")
            ]
        return others
