"""German sentences and what the rules make of them; nothing where they refuse."""

from __future__ import annotations

import random

import pyarrow.parquet as pq
import pytest

import opencse
from opencse.recipes import load_recipe
from opencse.text.documents import likely_language
from opencse.text.english.parse import parse_without_asides
from opencse.text.languages import choose_language
from opencse.text.syntax import Token, load_parser
from opencse.text.views.registry import VIEWS
from opencse_german import GERMAN, lexicon
from opencse_german.clause import main_clause
from opencse_german.words import AUXILIARIES, NEGATIVES

# sentence, negation
NEGATIONS = """
Anträge werden innerhalb von drei Tagen bearbeitet.|Anträge werden innerhalb von drei Tagen nicht bearbeitet.
Das Gerät ist für Kinder geeignet.|Das Gerät ist nicht für Kinder geeignet.
Der Zugang ist sehr sicher.|Der Zugang ist nicht sehr sicher.
Die Daten werden auf dem Server gespeichert.|Die Daten werden nicht auf dem Server gespeichert.
Wir haben die Frist für die Zahlung verlängert.|Wir haben die Frist für die Zahlung nicht verlängert.
Die Garantie umfasst den Akku.|Die Garantie umfasst den Akku nicht.
Der Vertrag endet am 3. Mai.|Der Vertrag endet nicht am 3. Mai.
Der Vertrag endet am 3. Mai 2021.|Der Vertrag endet nicht am 3. Mai 2021.
Kunden erhalten eine E-Mail mit der Bestätigung.|Kunden erhalten keine E-Mail mit der Bestätigung.
Wir haben eine Lösung gefunden.|Wir haben keine Lösung gefunden.
Nutzer können Dateien löschen.|Nutzer können keine Dateien löschen.
Nutzer können große Dateien löschen.|Nutzer können keine großen Dateien löschen.
Das Gerät schaltet sich automatisch aus.|Das Gerät schaltet sich nicht automatisch aus.
Öffnen Sie die Verpackung.|Öffnen Sie die Verpackung nicht.
Wenn die Lampe blinkt, ist der Akku leer.|Wenn die Lampe blinkt, ist der Akku nicht leer.
Das Gerät speichert die Daten, wenn Sie die Taste drücken.|Das Gerät speichert die Daten nicht, wenn Sie die Taste drücken.
Alle Mitarbeiter müssen einen Ausweis tragen.|Nicht alle Mitarbeiter müssen einen Ausweis tragen.
Jeder Nutzer hat ein Passwort.|Nicht jeder Nutzer hat ein Passwort.
Die Praxis ist am Montag geschlossen.|Die Praxis ist am Montag nicht geschlossen.
Ein Administrator kann Konten sperren.|Ein Administrator kann keine Konten sperren.
Der Motor läuft.|Der Motor läuft nicht.
Die Rechnung wurde bereits bezahlt.|Die Rechnung wurde noch nicht bezahlt.
Gelöschte Dateien können wiederhergestellt werden.|Gelöschte Dateien können nicht wiederhergestellt werden.
Das ist ein Fehler.|Das ist kein Fehler.
Bei Fragen hilft der Kundendienst.|Bei Fragen hilft der Kundendienst nicht.
Die Schulung findet am Montag statt.|Die Schulung findet am Montag nicht statt.
Die Firma wurde im Jahr 1998 gegründet.|Die Firma wurde nicht im Jahr 1998 gegründet.
Der Administrator sperrt das Konto nach drei Tagen.|Der Administrator sperrt das Konto nicht nach drei Tagen.
Gerichtsstand ist Hamburg.|Gerichtsstand ist nicht Hamburg.
Die Rückgabe ist nicht möglich.|Die Rückgabe ist möglich.
Das Tier ist gar nicht gefährlich.|Das Tier ist gefährlich.
Es gibt keine Ausnahmen.|Es gibt Ausnahmen.
Es gilt keine Ausnahme.|Es gilt eine Ausnahme.
Es fallen keine neuen Gebühren an.|Es fallen neue Gebühren an.
Kunden haben keinen Anspruch auf Erstattung.|Kunden haben einen Anspruch auf Erstattung.
Das Konto kann nicht mehr gelöscht werden.|Das Konto kann weiterhin gelöscht werden.
Die Zahlung ist noch nicht eingegangen.|Die Zahlung ist bereits eingegangen.
Das Passwort wird nie im Klartext gespeichert.|Das Passwort wird immer im Klartext gespeichert.
Einige Kunden sind zufrieden.|
Das Gerät ist nur für Erwachsene geeignet.|
Das Arzneimittel enthält Laktose.|
Die Packung enthält 30 Tabletten.|
Nehmen Sie die Tabletten mit Wasser ein.|
Die App sendet Daten an Dritte.|
Nicht nur Kinder sind gefährdet.|
Es gibt keine Geräte.|
Der Ausweis ist ein Jahr gültig.|
Der Dienst ist weder schnell noch sicher.|
Ist der Dienst sicher?|
Version 3 (Beta): die Datei|
Der Kunde zahlt und wird beliefert.|
"""

# sentence, paraphrase, negation, opposite
QUADRUPLES = """
Der Zugang ist sicher.|Der Zugang ist nicht unsicher.|Der Zugang ist nicht sicher.|Der Zugang ist unsicher.
Der Antrag wurde angenommen.|Der Antrag wurde nicht abgelehnt.|Der Antrag wurde nicht angenommen.|Der Antrag wurde abgelehnt.
Die Rückgabe ist nicht möglich.|Die Rückgabe ist unmöglich.|Die Rückgabe ist möglich.|Die Rückgabe ist nicht unmöglich.
Die neue Version ist schneller.||Die neue Version ist nicht schneller.|Die neue Version ist langsamer.
Der Kunde kauft ein Haus.|||
Die Daten werden vor der Übertragung verschlüsselt.|||
Die Nutzung ist auf eine Stunde begrenzt.|||
"""

# kind, sentence, view
OTHERS = """
negative_word|Alle Mitarbeiter müssen einen Ausweis tragen.|Keine Mitarbeiter müssen einen Ausweis tragen.
negative_word|Jeder Nutzer hat ein Passwort.|Kein Nutzer hat ein Passwort.
negative_word|Jeder darf teilnehmen.|Niemand darf teilnehmen.
negative_word|Das Tor ist immer offen.|Das Tor ist nie offen.
negative_word|Das Tor ist immer noch offen.|
negative_word|Die Tür ist offen.|
antonym_swap|Nehmen Sie die Tabletten ohne Wasser ein.|Nehmen Sie die Tabletten mit Wasser ein.
antonym_swap|Das Gerät schaltet sich automatisch aus.|Das Gerät schaltet sich automatisch ein.
antonym_swap|Der Kurs beginnt am Montag.|Der Kurs endet am Montag.
antonym_swap|Wir lagern die alten Geräte im Keller.|Wir lagern die neuen Geräte im Keller.
antonym_swap|Der Raum hat einen dunklen Boden.|Der Raum hat einen hellen Boden.
antonym_swap|Das Passwort muss mindestens acht Zeichen haben.|Das Passwort muss höchstens acht Zeichen haben.
antonym_swap|Nutzer können Dateien löschen.|
antonym_swap|Die Tür ist nicht offen.|
reordering|Wenn die Lampe blinkt, ist der Akku leer.|Der Akku ist leer, wenn die Lampe blinkt.
reordering|Das Gerät speichert die Daten, wenn Sie die Taste drücken.|Wenn Sie die Taste drücken, speichert das Gerät die Daten.
reordering|Anträge werden innerhalb von drei Tagen bearbeitet.|Innerhalb von drei Tagen werden Anträge bearbeitet.
reordering|Nach dem Ende der Frist können Kunden den Vertrag kündigen.|Kunden können nach dem Ende der Frist den Vertrag kündigen.
reordering|Hunde und Katzen sind erlaubt.|Katzen und Hunde sind erlaubt.
reordering|Der Hund schläft.|
question|Die Praxis öffnet um 8 Uhr.|Öffnet die Praxis um 8 Uhr?
question|Das Rechenzentrum befindet sich in Frankfurt.|Befindet sich das Rechenzentrum in Frankfurt?
question|Er wurde in Berlin geboren.|
keywords|Das Passwort wird nie im Klartext gespeichert.|Passwort nie Klartext gespeichert
"""  # noqa: E501

CHANGED = [
    ("number_swap", "Die Packung enthält 30 Tabletten.", "30"),
    ("number_swap", "Die Lizenz kostet 1.200 Euro im Jahr.", "1.200"),
    ("number_swap", "Der Versand dauert drei Tage.", "drei"),
    ("number_swap", "Das Gerät wiegt 3,5 kg.", "3,5"),
    ("number_swap", "Die Firma wurde im Jahr 1998 gegründet.", "1998"),
    ("number_swap", "Die Praxis öffnet um 8 Uhr.", "8"),
    ("entity_swap", "Gerichtsstand ist Hamburg.", "Hamburg"),
    ("entity_swap", "Das Rechenzentrum befindet sich in Frankfurt.", "Frankfurt"),
    ("entity_swap", "Die Firma hat ihren Sitz in München.", "München"),
    ("entity_swap", "Er wurde in Berlin geboren.", "Berlin"),
    ("entity_swap", "Der Vertrag endet am 31. März 2021.", "März"),
]

KEPT = [
    ("number_swap", "Kunden erhalten die Ware innerhalb von 14 Tagen."),
    ("number_swap", "Das Passwort muss mindestens acht Zeichen enthalten."),
    ("number_swap", "Die Datei beschreibt Version 3 Seite 2."),
    ("number_swap", "Der Raum fasst etwa 30 Personen."),
    ("entity_swap", "Wir liefern nach Berlin."),
    ("entity_swap", "Die Kunden wohnen in Frankreich."),
]


SENTENCES = [row.split("|")[0] for row in NEGATIONS.strip().split("\n")[:20]]


def rewritten(kind: str, text: str, seed: int = 0) -> list[str | None]:
    """The views of one kind that the German pack builds of a sentence."""
    spec = GERMAN.localised(VIEWS[kind]())
    (tokens,) = parse_without_asides(load_parser("blank:de"), [text])
    found = spec.rewrite(text, tokens, random.Random(seed))
    return [text for text, _ in (found if isinstance(found, list) else [found])]


def rows(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("case", rows(NEGATIONS))
def test_a_negation(case: str) -> None:
    text, negation = case.split("|")
    assert rewritten("negation", text) == [negation or None]


@pytest.mark.parametrize("case", rows(QUADRUPLES))
def test_a_paraphrase_a_negation_and_an_opposite(case: str) -> None:
    text, *views = case.split("|")
    assert rewritten("antonym_quadruple", text) == [view or None for view in views]
    assert rewritten("negated_antonym", text) == [views[0] or None]


@pytest.mark.parametrize("case", rows(OTHERS))
def test_another_view(case: str) -> None:
    kind, text, new = case.split("|")
    assert rewritten(kind, text) == [new or None]


@pytest.mark.parametrize(("kind", "text", "word"), CHANGED)
def test_a_number_or_name_changes_and_the_rest_stays(kind: str, text: str, word: str) -> None:
    before, after = text.split(word)
    for seed in range(8):
        (new,) = rewritten(kind, text, seed)
        assert new is not None
        assert new.startswith(before)
        assert new.endswith(after)
        assert new != text


@pytest.mark.parametrize(("kind", "text"), KEPT)
def test_a_number_or_name_that_excludes_no_other_stays(kind: str, text: str) -> None:
    assert rewritten(kind, text) == [None]


def test_a_clause_has_its_verb_in_second_place() -> None:
    text = "Innerhalb von drei Tagen werden die Anträge der Kunden im Amt bearbeitet."
    (tokens,) = load_parser("blank:de").parse([text])
    clause = main_clause(tokens)
    assert clause is not None
    assert (clause.front, tokens[clause.finite].text, tokens[clause.edge].text) == (
        "prepositional",
        "werden",
        "bearbeitet",
    )
    assert [phrase.kind for phrase in clause.phrases] == ["definite", "prepositional"]


def test_tags_of_a_full_pipeline_overrule_the_form_of_the_verb() -> None:
    words = ["Der", "Motor", "läuft", "."]
    tags = ["ART", "NN", "ADJA", "$."]
    places = [0, 4, 10, 15]
    tokens = [
        Token(text=w, start=p, end=p + len(w), lemma=w, tag=t, pos="", head=0, relation="")
        for w, p, t in zip(words, places, tags, strict=True)
    ]
    assert main_clause(tokens) is None


def test_the_word_lists_are_symmetric_and_their_classes_do_not_overlap() -> None:
    assert lexicon.attributes()["alten"].opposite == "neuen"
    assert lexicon.attributes()["hohe"].opposite == "niedrige"
    assert lexicon.attributes()["teure"].opposite == "billige"
    assert lexicon.particles()["schaltet", "aus"] == "ein"
    assert len(lexicon.adjectives()) > 500
    assert not AUXILIARIES & NEGATIVES


def test_the_pack_is_found_by_its_entry_point() -> None:
    chosen = choose_language("auto", likely_language(SENTENCES))
    assert chosen.pack is GERMAN
    assert chosen.pack.opposed_words("Der Zugang ist sicher.") == {"sicher": "unsicher"}


def test_a_recipe_is_built_by_the_rules_for_german_and_what_has_none_is_null(tmp_path) -> None:
    texts, notes = ["Der Antrag wurde vom Amt angenommen.", *SENTENCES], []
    out, only = tmp_path / "views", ["same_antonym", "swapped"]
    built = opencse.build("debias", texts, out, only=only, progress=False, notify=notes.append)
    line = "the texts look German: sentences are rewritten by rules for German; left out: swapped"
    assert notes[0] == line
    table = pq.read_table(sorted(built.glob("*.parquet")))
    same = dict(zip(table["text"].to_pylist(), table["same_antonym"].to_pylist(), strict=True))
    assert same["Der Antrag wurde vom Amt angenommen."] == "Der Antrag wurde vom Amt abgelehnt."
    assert table["swapped"].null_count == len(table)


def test_debias_lacks_four_views() -> None:
    line = choose_language("de", None).line(load_recipe("debias").build)
    assert line.endswith("by rules for German; left out: swapped, roles, claim, topic_question")
