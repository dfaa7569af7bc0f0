"""Clauses in which one date or place excludes another: events that happen once, and locations."""

from __future__ import annotations

from opencse_german.clause import GermanClause
from opencse_german.lexicon import german_names

_ONCE = frozenset("beginnt begann endet endete startet startete stirbt starb".split())
_DONE_ONCE = frozenset(
    """gegründet eröffnet erbaut gebaut errichtet veröffentlicht geboren eingeführt
    unterzeichnet verabschiedet gestorben fertiggestellt ernannt gewählt beendet
    abgeschlossen geschlossen zerstört eingestellt erfunden entdeckt verkauft gestartet
    abgeschafft""".split()
)
_AT_ONE_PLACE = frozenset("liegt lag steht stand sitzt".split())
_SEATS = (
    "Gerichtsstand",
    "Erfüllungsort",
    "Sitz",
    "Hauptsitz",
    "Firmensitz",
    "Hauptstadt",
    "Standort",
    "Geburtsort",
)


def is_month(word: str) -> bool:
    """Return whether a word is the name of a month."""
    return german_names().get(word) == "month"


def in_event(clause: GermanClause | None) -> bool:
    """Return whether a clause names an event that happens once: "beginnt", "wurde gegründet"."""
    if clause is None or not _has_one_subject(clause):
        return False
    finite = clause.word(clause.finite)
    last = clause.word(clause.end - 1)
    if finite in _ONCE:
        return True
    if finite == "findet":
        return last == "statt"
    return finite in ("wurde", "ist", "wird") and last in _DONE_ONCE


def at_one_place(clause: GermanClause | None, i: int) -> bool:
    """Return whether a token names the place of the subject: "befindet sich in Berlin"."""
    if clause is None or not _has_one_subject(clause):
        return False
    finite = clause.word(clause.finite)
    last = clause.word(clause.end - 1)
    front = {token.text for token in clause.tokens[: clause.finite]}
    if finite in ("ist", "bleibt") and front & set(_SEATS):
        return i == clause.end - 1 and i in (clause.finite + 1, clause.finite + 2)
    if clause.tokens[i - 1].text != "in":
        return False
    if finite in ("wurde", "ist") and last in (
        "geboren",
        "gestorben",
        "gegründet",
        "erbaut",
        "errichtet",
        "beheimatet",
    ):
        return i == clause.end - 2
    seat = finite == "hat" and any(token.text in _SEATS for token in clause.tokens)
    reflexive = any(token.text == "sich" for token in clause.tokens)
    located = finite in _AT_ONE_PLACE or (finite == "befindet" and reflexive)
    return i == clause.end - 1 and (seat or located)


def _has_one_subject(clause: GermanClause) -> bool:
    first = clause.word(0)
    coordinated = any(token.text in ("und", "oder") for token in clause.tokens[: clause.end])
    return (
        clause.front in ("definite", "pronoun", "bare")
        and first not in ("alle", "wir", "jeder")
        and not coordinated
    )
