"""German contradictions by name: another month, city or country, if one excludes the other."""

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
_LONG_MONTHS = ("Januar", "März", "Mai", "Juli", "August", "Oktober", "Dezember")


class GermanEntitySwap(EntitySwap):
    """Change the month or weekday of an event that happens once, or the place where a thing is."""

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
                before = tokens[i - 1].text
                # "am 3. Mai", "am Montag"
                dated = before[:-1].isdigit() if kind == "month" else before == "am"
                if dated:
                    places.append((i, kind))
        return places

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the other names of a kind that the sentence does not have."""
        late = kind == "month" and tokens[place - 1].text in _LATE
        others = []
        for name, other in german_names().items():
            # Not every month has a 31st.
            too_short = late and name not in _LONG_MONTHS
            if other == kind and name not in text and not too_short:
                others.append(name)
        return others
