"""Names and numbers are exchanged for `check` only where both sentences cannot be true."""

from __future__ import annotations

import pytest

from opencse.evaluation.check.contradictions import SentenceRewriter, rewrite_sentences
from opencse.evaluation.check.exclusive_swaps import (
    ExclusiveNameSwap,
    ExclusiveNumberSwap,
    ExclusiveOpposite,
    NegatedComplement,
)
from opencse.text.documents import DocumentPassage
from opencse.text.views.registry import SourceRow


def rewritten(spec, *sentences: str) -> list[str | None]:
    return [view.text for view in spec.open(seed=1)([SourceRow(id=i, text=s) for i, s in enumerate(sentences)])]


def test_dates_places_and_nationalities_of_one_subject_are_exchanged() -> None:
    date, born, lies, nationality = rewritten(
        ExclusiveNameSwap(),
        "The old bridge was opened on 4 June 1921.",
        "She was born in Portugal.",
        "Harwick is a small village in Belgium.",
        "He was a Danish painter.",
    )
    assert date.startswith("The old bridge was opened on 4 ")
    assert "June" not in date
    assert born.startswith("She was born in ")
    assert lies.startswith("Harwick is a small village in ")
    assert nationality.startswith(("He was a ", "He was an "))


@pytest.mark.parametrize(
    "sentence",
    [
        "Coffee production began in Brazil.",  # it may have begun in Peru as well
        "Many people moved to Spain.",
        "Greek and Roman towns had baths.",
        "By June 1921 the bridge was closed.",
        "The tea was popular in Japan.",
        "She was not born in Portugal.",
        "Soon after, Charles sold the house.",
        "She plays American football.",
    ],
)
def test_names_that_leave_room_for_others_stay(sentence: str) -> None:
    assert rewritten(ExclusiveNameSwap(), sentence) == [None]


def test_amounts_and_dates_of_one_event_are_exchanged() -> None:
    amount, date = rewritten(
        ExclusiveNumberSwap(), "The hall has 40 windows.", "The old bridge was opened on 4 June 1921."
    )
    assert amount.startswith("The hall has ")
    assert amount != "The hall has 40 windows."
    assert date != "The old bridge was opened on 4 June 1921."


@pytest.mark.parametrize(
    "sentence",
    [
        "The hall has more than 40 windows.",  # more than 30 is true as well
        "It runs on Python 2.",
        "The tool supports version 3.7.",
        "They played at the 2015 festival.",
        "The hall was let to the 82nd Brigade.",
        "It has been tested with 2 and 3 workers.",
        "A table with 40 windows.",
        "The price rose from 30 euros to 40 euros.",
        "The two sides agreed.",
        "She published a book on 4 June 1921.",  # and another one on another day
    ],
)
def test_numbers_that_leave_room_for_others_stay(sentence: str) -> None:
    assert rewritten(ExclusiveNumberSwap(), sentence) == [None]


def test_predicates_of_a_statement_are_replaced_by_their_opposite() -> None:
    assert rewritten(
        ExclusiveOpposite(),
        "The lock is safe.",
        "The offer was rejected by the council.",
        "The tool is an unofficial client.",
    ) == ["The lock is dangerous.", "The offer was accepted by the council.", "The tool is an official client."]


@pytest.mark.parametrize(
    "sentence",
    [
        "Binary arguments are printed by the client.",  # so may be all others
        "Swimwear is excluded from returns.",  # "included from" is no English
        "It is present from March to May.",
        "The castle is a modern building.",
        "The door is somewhat open.",
        "The guard said that the door is open.",
        "The lock is safe and cheap.",
        "The page is accessible on weekdays.",
    ],
)
def test_opposites_that_leave_room_or_do_not_fit_are_left_out(sentence: str) -> None:
    assert rewritten(ExclusiveOpposite(), sentence) == [None]


def test_sentences_that_a_negation_does_not_contradict_are_left_out() -> None:
    sentences = (
        "The lock is safe.",
        "The lock is sold only in shops.",
        "The lock is cheap because it is old.",
        "Call close() when the lock is open.",
        "The boy sees the dog.",
    )
    (chunk,) = rewrite_sentences([DocumentPassage("a.txt", sentences)], SentenceRewriter(seed=1))
    found = {each.text: set(each.contradictions) for each in chunk}
    assert "negation" in found[sentences[0]]
    assert "negation" not in found[sentences[1]] | found[sentences[2]]
    assert sentences[3] not in found  # code, not prose
    assert found[sentences[4]] == {"negation"}  # exchanged roles may be true as well


def test_what_is_possible_or_true_of_some_is_not_contradicted() -> None:
    sentences = (
        "The lock allows you to open the door.",
        "Some of the windows are open.",
        "The door is open.",
        "Ask us if the door is open.",
    )
    rewriter = SentenceRewriter(seed=1)
    passage = DocumentPassage("a.txt", sentences)
    allowed, some, plain, condition = rewriter([(0, i) for i in range(4)], [passage])
    assert "opposite" not in allowed.contradictions or "forbids" in allowed.contradictions["opposite"]
    assert "negation" not in some.contradictions
    assert {"negation", "opposite"} <= set(plain.contradictions)
    assert "opposite" not in condition.contradictions


def test_a_dated_event_is_not_reworded_by_a_negated_opposite() -> None:
    sentences = ("The plan was approved in 1986.", "The plan was approved on 4 May 1986.", "The plan was approved.")
    passages = [DocumentPassage("a", (sentence,)) for sentence in sentences]
    found = {each.text: each for chunk in rewrite_sentences(passages, SentenceRewriter()) for each in chunk}
    assert ["negated opposite" in found[sentence].rewordings for sentence in sentences] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "reworded"),
    [
        ("The motor of the pump is silent.", None),
        ("The chairs in the hall were new.", None),
        ("The visitors were happy.", None),
        ("The back door is open.", "closed"),
        ("The result of the test is valid.", "invalid"),
        ("The old bridge is not safe.", "dangerous"),
    ],
)
def test_gradual_opposites_are_not_negated_into_each_other(text, reworded) -> None:
    (view,) = NegatedComplement(contract=0.0).open()([SourceRow(id=0, text=text)])
    assert (view.text is None) == (reworded is None)
    assert reworded is None or reworded in view.text
