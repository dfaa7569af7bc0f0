"""Questions turned round, questions in other words, and statements denied as a whole."""

from __future__ import annotations

import random

import pytest

from opencse.text.english.asked import deny, is_question, opposite_questions, question_rewordings


@pytest.mark.parametrize(
    ("kind", "question", "opposite"),
    [
        ("action", "How do I mute a chat?", "How do I unmute a chat?"),
        ("action", "Where can I withdraw money?", "Where can I deposit money?"),
        ("other action", "How do I archive a message?", "How do I unarchive a message?"),
        ("order", "Are there flights before noon?", "Are there flights after noon?"),
        ("order", "Is the pool open until 8 pm?", "Is the pool open from 8 pm on?"),
        (
            "limit",
            "Which rooms hold at least forty guests?",
            "Which rooms hold at most forty guests?",
        ),
        ("limit", "Flats under 900 a month?", "Flats over 900 a month?"),
        ("presence", "Can I pay without a card?", "Can I pay with a card?"),
        (
            "presence",
            "Are there shoes that are waterproof?",
            "Are there shoes that are not waterproof?",
        ),
        ("presence", "Why is my camera detected by it?", "Why is my camera not detected by it?"),
        (
            "arguments",
            "How do I convert euros into dollars?",
            "How do I convert dollars into euros?",
        ),
        (
            "arguments",
            "Can teachers report parents to the board?",
            "Can parents report teachers to the board?",
        ),
    ],
)
def test_a_question_gets_its_opposite(kind: str, question: str, opposite: str) -> None:
    assert is_question(question)
    assert opposite_questions(question, random.Random(1))[kind] == opposite


@pytest.mark.parametrize(
    "question",
    [
        "How long does the journey take?",
        "Can guests use the towels?",  # towels use nobody
        "What is the way up from the lake?",
        "How do I lock up the shop?",  # another verb
        "Is it open before or after lunch?",
    ],
)
def test_other_questions_are_left_alone(question: str) -> None:
    assert opposite_questions(question, random.Random(1)) == {}


def test_a_question_is_asked_otherwise() -> None:
    reworded = question_rewordings("How do I mute a chat?")
    assert reworded["asked otherwise"] == "What is the way to mute a chat?"
    assert reworded["in keywords"] == "mute chat"
    assert question_rewordings("Can I pay without a card?")["in keywords"] == "pay without card"
    assert not question_rewordings("Opening hours of the pool.")


def test_a_statement_is_denied_as_a_whole() -> None:
    denied = deny("The old bridge is safe.", random.Random(1))
    assert denied is not None
    assert "the old bridge is safe" in denied.lower()
    assert denied != "The old bridge is safe."
    assert deny("Is the old bridge safe?", random.Random(1)) is None
    assert deny("Open the door.", random.Random(1)) is None


def test_code_is_no_question() -> None:
    assert not is_question("what if x == y?")
    assert not is_question("The bridge is safe.")
