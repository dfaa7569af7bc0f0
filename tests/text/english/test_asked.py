"""Questions turned round, questions in other words, and statements denied as a whole."""

from __future__ import annotations

import random

import pytest
from pyarrow import parquet

from opencse.evaluation.written_sets import load_guard
from opencse.foundation.roles import plain
from opencse.foundation.workers import Local
from opencse.recipes import load_recipe
from opencse.text.corpus import Corpus
from opencse.text.english.asked import (
    QuestionPair,
    deny,
    is_question,
    opposite_questions,
    question_rewordings,
)
from opencse.text.views.registry import VIEWS, SourceRow, build_views


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
            "Does the app work without an internet connection?",
            "Does the app work with an internet connection?",
        ),
        (
            "order",
            "Can I book an arrival on a Sunday?",
            "Can I book a departure on a Sunday?",
        ),
        ("order", "Is a departure on a Sunday fine?", "Is an arrival on a Sunday fine?"),
        (
            "presence",
            "Are there shoes that are waterproof?",
            "Are there shoes that are not waterproof?",
        ),
        ("limit", "Who has the most members?", "Who has the fewest members?"),
        ("limit", "What is the most common bird here?", "What is the least common bird here?"),
        ("action", "How do I add a user to the group?", "How do I remove a user from the group?"),
        ("order", "When does the train leave?", "When does the train arrive?"),
        (
            "order",
            "My card is lost. Is a visit after noon fine?",
            "My card is lost. Is a visit before noon fine?",
        ),
        ("presence", "Can I pay with an app?", "Can I pay without an app?"),
        ("presence", "What bank accepts coins?", "What bank does not accept coins?"),
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


def test_enough_questions_can_be_turned_round() -> None:
    """`check` needs an opposite and a rewording; rules that became stricter lost three of four questions."""
    questions = [
        "How do I mute a chat?",
        "How can I disable the alarm clock?",
        "Where can I buy a used tent?",
        "Can I swim before sunrise?",
        "What are the flats below the roof?",
        "Which tents sleep at least four people?",
        "Is there a campsite without a shop?",
        "How do I get from the harbour to the castle?",
        "What is the most popular hike?",
        "Are there huts that are heated?",
        "Can I pay with a cheque?",
        "When does the ferry leave?",
        # Nothing here has an opposite that makes sense.
        "What colour is the ferry?",
        "Who built the lighthouse?",
    ]
    rng = random.Random(1)
    turned = [
        question
        for question in questions
        if opposite_questions(question, rng) and question_rewordings(question)
    ]
    assert turned == questions[:12]


def test_the_guard_of_questions_can_be_turned_round_as_often_as_before() -> None:
    guard = next(task for task in load_guard() if task.name == "guard-questions")
    questions = list(dict.fromkeys(map(plain, guard.texts())))
    rng = random.Random(1)
    turned = sum(
        bool(opposite_questions(question, rng) and question_rewordings(question))
        for question in questions
        if is_question(question)
    )
    assert len(questions) == 389
    assert turned >= 24  # few, because an opposite has to make sense


@pytest.mark.parametrize(
    "question",
    [
        "How long does the journey take?",
        "Can guests use the towels?",  # towels use nobody
        "What is the way up from the lake?",
        "How do I lock up the shop?",  # another verb
        "Is it open before or after lunch?",
        "How much money do I get during parental leave?",
        "Does your desk charge a fee for the currency exchange?",
        "How long should I wait before an operation?",
        "I've never jogged before, how should I begin?",
        "Who is the zoo named after?",
        "Why do I see this more than once?",
        "Where do I enter my number?",
    ],
)
def test_other_questions_are_left_alone(question: str) -> None:
    assert opposite_questions(question, random.Random(1)) == {}


def test_a_question_is_asked_otherwise() -> None:
    reworded = question_rewordings("How do I mute a chat?")
    assert reworded["asked otherwise"] == "What is the way to mute a chat?"
    assert reworded["in keywords"] == "mute chat"
    assert question_rewordings("Can I pay without a card?")["in keywords"] == "pay without card"
    assert "asked otherwise" not in question_rewordings("Which rooms can I book?")
    assert question_rewordings("Is there a lift?")["asked otherwise"] == "Do you know of a lift?"
    assert not question_rewordings("Opening hours of the pool.")


def test_a_statement_is_denied_as_a_whole() -> None:
    denied = deny("The old bridge is safe.", random.Random(1))
    assert denied is not None
    assert "the old bridge is safe" in denied.lower()
    assert denied != "The old bridge is safe."
    assert deny("Is the old bridge safe?", random.Random(1)) is None
    assert deny("Open the door.", random.Random(1)) is None


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("a card that has already been sent", "a card that has not yet been sent"),
        ("songs that have never been sung", "songs that have been sung"),
        ("a bank that had just left town", None),
        ("tents that had since been sold", "tents that had not been sold"),
        ("posts that have to be paid", "posts that do not have to be paid"),
        ("a mug that has a lid", "a mug that lacks a lid"),
        ("huts that have any heating", "huts that lack heating"),
        # "heated" may describe the pools, or be what was done to them.
        ("huts that have heated pools", None),
        ("huts that have no heating", None),
    ],
)
def test_a_helping_verb_is_not_taken_for_possession(text: str, opposite: str | None) -> None:
    assert opposite_questions(text, random.Random(1)).get("presence") == opposite


def test_an_obligation_is_not_reworded_as_a_possession() -> None:
    assert "asked otherwise" not in question_rewordings("Do you have to be an adult?")


def test_code_is_no_question() -> None:
    assert not is_question("what if x == y?")
    assert not is_question("The bridge is safe.")


def asked(text: str, *rules: str) -> tuple[str | None, str | None]:
    (views,) = QuestionPair(rules=rules).open()([SourceRow(id=0, text=text)])
    reworded, opposed = views
    return reworded.text, opposed.text


def test_a_view_asks_the_same_and_the_opposite() -> None:
    assert asked("How do I mute a chat?") == (
        "What is the way to mute a chat?",
        "How do I unmute a chat?",
    )
    assert asked("hotel without a pool") == (None, "hotel with a pool")
    assert asked("How do I mute a chat?", "limit") == ("What is the way to mute a chat?", None)
    for statement in ("The flights before noon are full.", "Pay without a card!", "x == y?"):
        assert asked(statement) == (None, None)


def test_the_rule_or_the_reason_is_recorded() -> None:
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(["Flights before noon?", "Stop."])]
    (reworded, opposed), (nothing, _) = QuestionPair().open()(rows)
    assert (reworded.text, reworded.rule) == (None, "no other form")
    assert (opposed.text, opposed.rule) == ("Flights after noon?", "order")
    assert opposed.scores["mer"] > 0
    assert nothing.rule == "no question"


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no rule 'weather'; choose among action"):
        QuestionPair(rules=("weather",))


def test_a_recipe_can_name_the_view(tmp_path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    loaded = load_recipe(recipe)
    assert isinstance(loaded.build["asked"], VIEWS["question_pair"])
    assert loaded.build["asked"].rules == ("action", "order")
    corpus = tmp_path / "questions.txt"
    corpus.write_text("How do I mute a chat?\nThe bridge is safe.\n", encoding="utf-8")
    build_views(Corpus(corpus), loaded.build, tmp_path / "views", engine=Local(processes=1))
    (file,) = (tmp_path / "views").glob("*.parquet")
    table = parquet.read_table(file).to_pydict()
    assert table["asked_opposed"] == ["How do I unmute a chat?", None]
    assert table["asked_reworded"] == ["What is the way to mute a chat?", None]


RECIPE = """extends = "simcse"
title = "Questions and their opposites"

[build.asked]
kind = "question_pair"
rules = ["action", "order"]

[views]
positive = { text = "asked_reworded" }
negative = { text = "asked_opposed", optional = true }

[losses.info_nce]
positive = "positive"
negatives = ["negative"]
"""
