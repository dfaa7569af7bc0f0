"""German negation of the main clause: "nicht" or "kein" put in its place, or removed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from opencse.text.english.negation import Negation
from opencse.text.english.parse import Rewrite
from opencse.text.syntax import Edit, Token, apply_edits, match_case
from opencse_german import words as w
from opencse_german.clause import GermanClause, Phrase, main_clause
from opencse_german.lexicon import german_names

Edits = tuple[list[Edit] | None, str]
"""The edits, or None if no rule is safe, and the rule or the reason."""

_AFTER_NICHT = frozenset(
    "nur unbedingt immer alle allein zuletzt selten einmal umsonst zu mal so ganz wenige jeder jede jedes".split()
)
"""Words after which removing "nicht" does not give the opposite, or leaves bad German."""
_SINGULAR_MASS = frozenset(
    """Alkohol Wasser Zucker Strom Geld Zeit Zugriff Zugang Schutz Platz Bedarf Personal
    Internet Papier Fleisch Gluten Laktose Milch Benzin Gas Glas Holz Lärm Staub Fieber
    Schmerzen Haftung Gewähr Werbung Kontakt Einfluss Ersatz Erfahrung Hilfe Unterstützung
    Verantwortung Erfolg Rücksicht Support Speicherplatz""".split()
)
_FEMININE_E = frozenset(
    """Ausnahme Frage Adresse Woche Stunde Minute Tabelle Spalte Zeile Seite Stelle Reihe
    Grenze Gruppe Rolle Regel Datei Lizenz Karte Sperre Pause Taste Schnittstelle Umgebung
    Prüfsumme Signatur Ursache Wirkung Reise Strafe Miete Quelle Sprache Sache Spritze
    Salbe Tablette Kapsel Dosis Diagnose Therapie Allergie Reserve Rückgabe Ausgabe
    Eingabe Abnahme Aufnahme Einnahme Maßnahme Garantie Kopie Kategorie Antwort Nachricht
    Rechnung""".split()
)


class GermanNegation(Negation):
    """Negate the main clause, or remove its negation; only the option `remove` has an effect."""

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate one sentence."""
        edits, rule = negation_edits(tokens, remove=self.remove)
        if edits is None:
            return None, rule
        return apply_edits(text, edits), rule


def negation_edits(tokens: Sequence[Token], *, remove: bool = True) -> Edits:
    """Return the edits that negate a sentence or remove its negation, and the rule.

    If no rule is safe, the edits are None, and the rule is the reason.
    """
    negatives = [i for i, token in enumerate(tokens) if token.text.lower() in w.NEGATIVES]
    if negatives:
        if not remove:
            return None, "negative already"
        return _remove(tokens, negatives)
    clause = main_clause(tokens)
    if clause is None:
        return None, "unclear clause"
    if any(clause.word(i) in w.VAGUE for i in range(clause.end)):
        return None, "vague quantity"
    focus = [i for i in range(clause.end) if clause.word(i) in w.FOCUS]
    if focus:
        return _focus(clause, focus)
    if clause.front == "indefinite" and not clause.auxiliary:
        return None, "indefinite subject"
    return _insert(clause)


def _focus(clause: GermanClause, focus: Sequence[int]) -> Edits:
    """Turn "bereits" before the verb cluster into "noch nicht"."""
    i = focus[0]
    token = clause.tokens[i]
    before_cluster = clause.finite < i == clause.edge - 1
    if len(focus) == 1 and clause.word(i) in ("bereits", "schon") and before_cluster:
        return [(token.start, token.end, "noch nicht")], "bereits"
        return [(clause.tokens[i].start, clause.tokens[i].end, "noch nicht")], "bereits"
    return None, "focus"


def _insert(clause: GermanClause) -> Edits:
    """Negate a clause that has no negative, vague or focus word."""
    tokens = clause.tokens
    phrases = list(clause.phrases)
    if clause.word(0) in ("alle", "jeder", "jede", "jedes") and clause.front == "definite":
        return [(tokens[0].start, tokens[0].end, "Nicht " + clause.word(0))], "not all"
    objects = [p for p in phrases if p.kind == "indefinite"]
    if objects:
        return _kein(tokens, objects)
    edge = clause.edge
    while phrases and phrases[-1].kind == "manner":
        edge = phrases.pop().start
    last = phrases[-1] if phrases else None
    if last is not None and last.kind == "bare":
        return _bare(clause, last)
    if last is not None and last.kind == "counted":
        return None, "counted object"
    place: int | None = edge
    if last is not None and last.kind == "prepositional":
        place = _before_phrase(clause, phrases, edge)
    elif edge == clause.end and clause.auxiliary and last is not None:
        # "ist nicht der Administrator"
        place = last.start
    if place is None:
        return None, "unclear place"
    if place >= clause.end:
        return [(tokens[place - 1].end, tokens[place - 1].end, " nicht")], "nicht"
    return [(tokens[place].start, tokens[place].start, "nicht ")], "nicht"


def _kein(tokens: Sequence[Token], objects: Sequence[Phrase]) -> Edits:
    """Turn "ein" before the only indefinite object into "kein"."""
    article = tokens[objects[0].start]
    after = tokens[objects[0].start + 1].text
    if len(objects) > 1 or after in ("paar", "bisschen", "Paar") or after.lower() in w.DETERMINERS:
        return None, "indefinite objects"
    if is_time(tokens, objects[0]):
        return None, "counted object"
    word = match_case("k" + article.text.lower(), article.text)
    return [(article.start, article.end, word)], "kein"


def _before_phrase(clause: GermanClause, phrases: Sequence[Phrase], edge: int) -> int | None:
    """Return the place of "nicht" if the last phrase is prepositional; None if it is unclear."""
    phrase = phrases[-1]
    before = phrases[-2] if len(phrases) > 1 else None
    to_noun = before is not None and before.kind not in ("pronoun", "reflexive", "adverb", "manner")
    temporal = is_temporal(clause.tokens, phrase)
    in_bracket = edge < clause.end
    particle = in_bracket and clause.word(clause.end - 1) in w.PARTICLES
    if temporal:
        words = [token.text for token in clause.tokens[phrase.start : phrase.end]]
        dated = words[0].lower() in w.CONTRACTED and any(map(w.is_number, words))
        return edge if in_bracket and not dated else phrase.start
    if to_noun:
        # "die Frist für die Zahlung" may be one phrase.
        return edge if in_bracket and not particle else None
    return phrase.start


def is_temporal(tokens: Sequence[Token], phrase: Phrase) -> bool:
    """Return whether a prepositional phrase names a time."""
    return tokens[phrase.start].text.lower() in w.TIME_PREPOSITIONS and is_time(tokens, phrase)


def is_time(tokens: Sequence[Token], phrase: Phrase) -> bool:
    """Return whether a phrase has a noun of time."""
    return any(w.TIME_NOUNS.fullmatch(token.text) for token in tokens[phrase.start : phrase.end])


def _bare(clause: GermanClause, phrase: Phrase) -> Edits:
    """Put "keine" before a plural without a determiner; its adjectives get the ending -en."""
    tokens = clause.tokens
    nouns = [i for i in range(phrase.start, phrase.end) if w.is_noun(tokens[i].text)]
    coordinated = any(tokens[i].text in w.COORDINATORS for i in range(phrase.start, phrase.end))
    if not nouns or coordinated or len(nouns) > 1:
        return None, "several nouns"
    start = tokens[phrase.start].start
    noun = nouns[0]
    word = tokens[noun].text
    is_all = clause.auxiliary and clause.edge == clause.end
    if is_all and (word in ("Teil", "Bestandteil") or word in german_names()):
        # "ist nicht Teil des Vertrags"
        return [(start, start, "nicht ")], "nicht"
    if not w.is_plural(word):
        return None, "bare noun"
    edits: list[Edit] = [(start, start, "keine ")]
    for i in range(phrase.start, noun):
        if not w.is_attribute(tokens[i].text) or not tokens[i].text.endswith("e"):
            return None, "adjective"
        edits.append((tokens[i].end, tokens[i].end, "n"))
    return edits, "keine"


def _remove(tokens: Sequence[Token], negatives: Sequence[int]) -> Edits:
    """Remove the only negation of a sentence."""
    if len(negatives) > 1 or any(token.text.lower() in w.VAGUE for token in tokens):
        return None, "negative words"
    i = negatives[0]
    if tokens[-1].text not in (".", "!") or _in_subordinate(tokens, i):
        return None, "subordinate negation"
    word = tokens[i].text.lower()
    if word == "nicht":
        return _without_nicht(tokens, i)
    if word in ("nie", "niemals") and i:
        return [(tokens[i].start, tokens[i].end, "immer")], "nie"
    if word.startswith("kein") and word[4:] in ("", "e", "en", "em", "er", "es"):
        return _without_kein(tokens, i)
    return None, "negative words"


def _in_subordinate(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a token follows a comma, or is in the clause that opens the sentence."""
    before = [token.text for token in tokens[:i]]
    if tokens[0].text.lower() in w.CONDITIONS:
        return before.count(",") != 1
    return "," in before


def _without_nicht(tokens: Sequence[Token], i: int) -> Edits:
    """Remove "nicht", or turn "nicht mehr" into "weiterhin" and "noch nicht" into "bereits"."""
    token = tokens[i]
    after = tokens[i + 1].text.lower()
    before = tokens[i - 1].text.lower() if i else ""
    if not i or after in _AFTER_NICHT or before in ("oder", "ob", "auch", "nur", "warum", "bitte"):
        return None, "nicht with a focus"
    if after == "mehr" and tokens[i + 2].text != "als":
        return [(token.start, tokens[i + 1].end, "weiterhin")], "nicht mehr"
    if before == "noch":
        return [(tokens[i - 1].start, token.end, "bereits")], "noch nicht"
    if before in w.FOCUS or after in w.FOCUS - {"mehr"}:
        return None, "nicht with a focus"
    # "gar nicht" goes as a whole.
    first = i - 1 if before in ("gar", "überhaupt", "absolut") else i
    return [(tokens[first - 1].end, token.end, "")], "nicht removed"


def _without_kein(tokens: Sequence[Token], i: int) -> Edits:
    """Turn "kein" into "ein", or leave it out before a plural or a mass noun."""
    token = tokens[i]
    noun = next((k for k in range(i + 1, len(tokens)) if w.is_noun(tokens[k].text)), None)
    if noun is None or any(not w.is_attribute(t.text) for t in tokens[i + 1 : noun]):
        return None, "kein without a noun"
    word = tokens[noun].text
    plain = noun == i + 1
    before = tokens[i - 1].text.lower() if i else ""
    ending = token.text.lower()[4:]
    if word in _SINGULAR_MASS:
        if not plain:
            return None, "mass noun"
        return _left_out(tokens, i, noun)
    if ending == "e" and (word in _FEMININE_E or (w.is_feminine(word) and not w.is_plural(word))):
        return [(token.start, token.end, match_case("eine", token.text))], "kein removed"
    if ending == "e" and w.is_plural(word):
        return _left_out(tokens, i, noun)
    if ending == "e" or (ending == "en" and (before in w.PREPOSITIONS or w.is_plural(word))):
        return None, "singular or plural"
    return [(token.start, token.end, match_case("ein" + ending, token.text))], "kein removed"


def _left_out(tokens: Sequence[Token], i: int, noun: int) -> Edits:
    """Leave out "keine"; adjectives before the noun then end in -e."""
    article = tokens[i]
    following = tokens[i + 1]
    if noun == i + 1:
        word = match_case(following.text, article.text)
        return [(article.start, following.end, word)], "kein removed"
    if any(not token.text.endswith("en") for token in tokens[i + 1 : noun]):
        return None, "adjective"
    word = match_case(following.text[:-1], article.text)
    edits: list[Edit] = [(article.start, following.end, word)]
    for token in tokens[i + 2 : noun]:
        edits.append((token.end - 1, token.end, ""))
    return edits, "kein removed"
