"""Rewriting by the table of claims."""

from __future__ import annotations

import random
import re

import pytest

from opencse.text.english import questions
from opencse.text.english.claims import Claim
from opencse.text.english.lexicon import indefinite_article, lexicon_rows, names
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import load_parser
from opencse.text.views.registry import (
    EntitySwap,
    Keywords,
    NumberSwap,
    Question,
    SourceRow,
    TopicQuestion,
)

PARTS = Claim.parts


def written(text: str, tries: int = 40) -> dict[str, set[str]]:
    """All texts that some seed writes, by column."""
    spec, (tokens,) = Claim(), parse_without_asides(load_parser("syntax"), [text])
    drawn = [spec.rewrite(text, tokens, random.Random(seed)) for seed in range(tries)]
    return {part: {views[k][0] or "" for views in drawn} - {""} for k, part in enumerate(PARTS)}


# sentence, all rewordings, all that is opposed
BOTH_SIDES = """
At least ten people came.|A minimum of ten people came./No fewer than ten people came./Ten or more people came.|A maximum of ten people came./At most ten people came./No more than ten people came./Ten or fewer people came./Up to ten people came.
He comes only if Ann sings.|He comes on condition that Ann sings./He comes only when Ann sings.|He comes even if Ann sings./He comes regardless of whether Ann sings.
Helmets are required.|Helmets are compulsory./Helmets are mandatory.|Helmets are not required./Helmets are optional.
It was built before 1990.|It was built earlier than 1990./It was built prior to 1990.|It was built after 1990./It was built later than 1990./It was built subsequent to 1990.
The soup contains nuts.|The soup includes nuts.|The soup contains no nuts./The soup does not contain nuts./The soup is free of nuts./The soup lacks nuts.
No dogs are kept here.|No beagles are kept here./No poodles are kept here./No terriers are kept here.|Some beagles are kept here./Some dogs are kept here./Some poodles are kept here./Some terriers are kept here.
"""  # noqa: E501


@pytest.mark.parametrize("case", BOTH_SIDES.strip().split("\n"))
def test_both_sides_are_written(case: str) -> None:
    text, reworded, opposed = case.split("|")
    views = written(text)
    assert views["reworded"] == set(reworded.split("/"))
    assert views["opposed"] == views["opposed_reworded"] == set(opposed.split("/"))


OPPOSED = """
The new pump runs more quietly than the old one.|The new pump runs less quietly than the old one.
The oven uses twice the power.|The oven uses half the power.
It is the most reliable printer we own.|It is the least reliable printer we own.
Orders ship unless they are on hold.|Orders ship provided that they are on hold.
All seats except for the last row are heated.|All seats including the last row are heated.
Guests may bring a friend.|Guests must not bring a friend.
Smoking is allowed on the terrace.|Smoking is forbidden on the terrace.
The lift has been out of order since 2019.|The lift has been out of order until 2019.
The warranty still covers the battery.|The warranty no longer covers the battery.
The flat has a balcony.|The flat lacks a balcony.
There are no toilets on this floor.|There are some toilets on this floor.
Most of the rooms face the sea.|Few of the rooms face the sea.
"""


@pytest.mark.parametrize("case", OPPOSED.strip().split("\n"))
def test_a_claim_is_opposed(case: str) -> None:
    text, opposed = case.split("|")
    assert opposed in written(text)["opposed"]


def test_what_excludes_the_sentence_without_denying_it_is_exchanged_only() -> None:
    views = written("Not all birds can swim.", tries=80)
    assert "No birds can swim." in views["exchanged"]
    assert "All birds can swim." in views["opposed"]
    assert "No birds can swim." not in views["reworded"] | views["opposed"]
    views = written("The bag weighs 5 kg.")
    assert views["reworded"] == {"The bag weighs 5 kilograms.", "The bag weighs 5,000 grams."}
    assert views["exchanged"]
    assert not views["exchanged"] & {"The bag weighs 5 kg.", "The bag weighs 5,000 grams."}
    views = written("They met on Monday.")
    assert len(views.pop("exchanged")) == 6
    assert not any(views.values())


@pytest.mark.parametrize(
    "text",
    [
        "Here it is.",
        "The contract of May 17, 1990, was short.",
        "Ann sang in The Best of Both Worlds.",
        "He appeared before the court.",
        "The square was named after Queen Anne.",
        "This may or may not be true.",
        "The race took 3:31 minutes.",
        "The limit is 80 km/h.",
        "Their basic needs to us are plain.",
        "He self-contained-ish kept on.",
        "The wall was replaced with a fence.",
    ],
)
def test_other_meanings_are_left_alone(text: str) -> None:
    assert not any(written(text).values())


def test_the_table_has_every_kind_once_and_the_kind_builds_its_four_columns() -> None:
    kinds = set()
    for kind, _, one, other, *_ in lexicon_rows("claims"):
        kinds.add(kind)
        assert not {side.lstrip("~") for side in one.split(" / ")} & {
            side.lstrip("~") for side in other.split(" / ")
        }
    assert kinds == set(
        "quantifier comparative condition modality time presence entailment calendar".split()
    )
    spec = Claim()
    assert spec.columns("claim") == (
        "claim_reworded",
        "claim_opposed",
        "claim_opposed_reworded",
        "claim_exchanged",
    )
    views = spec.open(seed=1)(
        [SourceRow(id=0, text="All of the doors are shut."), SourceRow(id=1, text="Yes.")]
    )
    assert views[0][1].text in ("None of the doors are shut.", "Not one of the doors are shut.")
    assert views[0][1].rule == "quantifier"
    assert [view.text for view in views[1]] == [None] * 4


def made(spec, text, rows=30):
    return [
        view.text for view in spec.open(seed=3)([SourceRow(id=i, text=text) for i in range(rows)])
    ]


def test_another_name_of_its_kind():
    for text in made(EntitySwap(), "An Italian painter moved to the house."):
        article, name = re.fullmatch(r"(An?) (\w+) painter moved to the house\.", text).groups()
        assert names()[name] == "nationality"
        assert article.lower() == indefinite_article(name)
    assert {
        names()[text.split()[-1].rstrip(".")] for text in made(EntitySwap(), "He lives in France.")
    } == {"country"}
    assert all(
        "June" not in text
        for text in made(EntitySwap(), "He left on June 30, and was back before June ended.")
    )


@pytest.mark.parametrize(
    "text",
    ["He sang.", "He lives in New England.", "She read the Paris Review.", "A French-German film."],
)
def test_names_that_stay(text):
    assert made(EntitySwap(), text, 3) == [None] * 3


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("He was born in 1950.", r"He was born in (19[1-9]\d)\."),
        ("It lasted from 1950 to 1960.", r"It lasted from (\d{4}) to (\d{4})\."),
        ("The lake is 40 metres deep.", r"The lake is (\d\d) metres deep\."),
        ("She bought three apples.", r"She bought (\w+) apples\."),
        ("The city has 12,400 inhabitants.", r"The city has (\d{1,2},\d00) inhabitants\."),
        ("It opened in the 19th century.", r"It opened in the (\d+)(?:st|nd|rd|th) century\."),
        ("About 30 percent agreed.", r"About (\d\d?) percent agreed\."),
    ],
)
def test_another_number_of_like_size(text, pattern):
    outputs = made(NumberSwap(), text)
    assert all(one != text and re.fullmatch(pattern, one) for one in outputs)
    assert len(set(outputs)) > 2


def test_years_keep_their_order_and_the_article_follows_the_number():
    for text in made(NumberSwap(), "It lasted from 1950 to 1960."):
        first, last = map(int, re.findall(r"\d{4}", text))
        assert first < last
    outputs = made(NumberSwap(), "It was an 80 page book.")
    assert all(
        (" an " in text) == (" 8" in text or " 11 " in text or " 18 " in text) for text in outputs
    )
    assert any(" a " in text for text in outputs)


@pytest.mark.parametrize(
    "text",
    ["They won 3-2.", "It starts at 10:30.", "One man came.", "Apollo 11 landed.", "He sang."],
)
def test_numbers_that_stay(text):
    assert made(NumberSwap(), text, 3) == [None] * 3


# statement, question ("" for null)
QUESTIONS = """
Refunds are allowed.|Are refunds allowed?
The shop opens at nine.|Does the shop open at nine?
The engine has been repaired twice.|Has the engine been repaired twice?
In winter, the lake is frozen.|Is the lake frozen in winter?
Anna also speaks Danish.|Does Anna also speak Danish?
The cook washed the pans and dried the plates.|Did the cook wash the pans and dry the plates?
The museum is closed, and the park is open.|Is the museum closed?
However, the harbour is deep.|Is the harbour deep?
It is closed.|
The shop is not open.|
Is the shop open?|
Close the door.|
He said: the shop is open.|
If it rains, the match is cancelled.|
"""
SUBJECTS = """
Refunds are allowed.|What is allowed?
The teacher opened the window.|Who opened the window?
The shops close at nine.|What closes at nine?
The winner is tall.|Is the winner tall?
Oslo is cold in winter.|Is Oslo cold in winter?
"""


def one(opened, text):
    return opened([SourceRow(id=0, text=text)])[0].text


@pytest.mark.parametrize(("share", "cases"), [(0.0, QUESTIONS), (1.0, SUBJECTS)])
def test_a_statement_becomes_a_question(monkeypatch, share, cases):
    monkeypatch.setattr(questions, "_SUBJECTS", share)
    opened = Question().open()
    for case in cases.strip().split("\n"):
        statement, question = case.split("|")
        assert one(opened, statement) == (question or None)


def test_questions_are_short_and_a_share_begins_with_an_adverb():
    assert one(Question().open(), f"The shop {'of the son ' * 8}opens at nine.") is None
    opened = Question(adverbs=1.0).open()
    asked = {opened([SourceRow(id=number, text="Oslo is cold.")])[0].text for number in range(20)}
    assert asked == {f"{word} is Oslo cold?" for word in ("Why", "How", "When")}
    with pytest.raises(ValueError, match="adverbs"):
        Question(adverbs=-0.1)


TEXT = "The old bridge over the river carries heavy trucks."


def asked_topic_question(text: str, rows: int = 80) -> set[str]:
    opened = TopicQuestion().open()
    return {
        str(view.text) for view in opened([SourceRow(id=row, text=text) for row in range(rows)])
    }


def test_a_topic_question_asks_about_the_nouns_of_the_sentence() -> None:
    found = asked_topic_question(TEXT)
    assert all(
        any(topic in question for topic in ("the old bridge", "the river", "heavy trucks"))
        for question in found
    )
    assert all(question.endswith("?") and question[0].isupper() for question in found)
    assert {question.split()[0] for question in found} >= {"What", "How", "Where", "Who", "Why"}
    found = asked_topic_question("Her sister sold this house.")
    assert all("her" not in q.lower().split() and "this" not in q.split() for q in found)
    assert any("the house" in q for q in found)
    assert asked_topic_question("It is here.") == {"None"}


def test_verbs_agree_with_the_noun() -> None:
    words = {"is": "singular", "does": "singular", "are": "plural", "do": "plural"}
    for question in asked_topic_question(TEXT, 300):
        first = question.lower().split(" the ")[0].split(" heavy ")[0].split()
        if first[-1] in words and "use of" not in question:
            assert words[first[-1]] == ("plural" if "trucks" in question else "singular"), question


def drawn_keywords(text):
    rows = [SourceRow(id=row, text=text) for row in range(30)]
    return {view.text for view in Keywords().open()(rows)}


def test_keywords_are_content_words_in_order_with_names_and_negations_whole():
    drawn = drawn_keywords("The hotel by the lake allows small dogs in all of its rooms.")
    assert {"hotel lake allows small dogs rooms"} <= drawn
    assert {text for text in drawn if len(text.split()) == 4} <= {
        "hotel lake allows dogs",
        "hotel allows dogs rooms",
    }
    assert all(
        "New York" in text
        for text in drawn_keywords("The train to New York leaves the old station.")
    )
    assert all(
        "not accept" in text
        for text in drawn_keywords("The shop in the street does not accept cards.")
    )
    drawn = drawn_keywords(
        "The museum shows old maps, rare coins, early clocks and many letters of sailors."
    )
    assert len({len(text.split()) for text in drawn}) > 2
    assert drawn_keywords("It is here.") == {None}
