from __future__ import annotations

import pytest

from opencse.text.english import questions
from opencse.text.views.registry import Keywords, Question, SourceRow, TopicQuestion

# statement, question ("" for null)
QUESTIONS = """
Refunds are allowed.|Are refunds allowed?
The shop opens at nine.|Does the shop open at nine?
The guests left before noon.|Did the guests leave before noon?
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


def test_long_questions_are_left_out():
    assert one(Question().open(), f"The shop {'of the son ' * 8}opens at nine.") is None


def test_a_share_of_the_questions_begins_with_an_adverb():
    opened = Question(adverbs=1.0).open()
    asked = {opened([SourceRow(id=number, text="Oslo is cold.")])[0].text for number in range(20)}
    assert asked == {f"{word} is Oslo cold?" for word in ("Why", "How", "When")}
    with pytest.raises(ValueError, match="adverbs"):
        Question(adverbs=-0.1)


TEXT = "The old bridge over the river carries heavy trucks."


def asked_topic_question(text: str, rows: int = 80) -> set[str]:
    opened = TopicQuestion().open()
    return {str(view.text) for view in opened([SourceRow(id=row, text=text) for row in range(rows)])}


def test_it_asks_about_what_the_sentence_mentions() -> None:
    found = asked_topic_question(TEXT)
    assert all(
        any(topic in question for topic in ("the old bridge", "the river", "heavy trucks")) for question in found
    )
    assert all(question.endswith("?") and question[0].isupper() for question in found)
    assert {question.split()[0] for question in found} >= {"What", "How", "Where", "Who", "Why"}


def test_verbs_agree_with_the_noun() -> None:
    words = {"is": "singular", "does": "singular", "are": "plural", "do": "plural"}
    for question in asked_topic_question(TEXT, 300):
        first = question.lower().split(" the ")[0].split(" heavy ")[0].split()
        if first[-1] in words and "use of" not in question:
            assert words[first[-1]] == ("plural" if "trucks" in question else "singular"), question


def test_owners_and_demonstratives_are_left_out() -> None:
    found = asked_topic_question("Her sister sold this house.")
    assert all("her" not in q.lower().split() and "this" not in q.split() for q in found)
    assert any("the house" in q for q in found)


def test_without_a_noun_there_is_no_question() -> None:
    assert asked_topic_question("It is here.") == {"None"}


def drawn_keywords(text):
    rows = [SourceRow(id=row, text=text) for row in range(30)]
    return {view.text for view in Keywords().open()(rows)}


def test_content_words_keep_their_order():
    drawn = drawn_keywords("The hotel by the lake allows small dogs in all of its rooms.")
    assert {"hotel lake allows small dogs rooms"} <= drawn
    assert {text for text in drawn if len(text.split()) == 4} <= {"hotel lake allows dogs", "hotel allows dogs rooms"}


def test_names_stay_whole_and_negative_words_stay():
    assert all("New York" in text for text in drawn_keywords("The train to New York leaves the old station."))
    assert all("not accept" in text for text in drawn_keywords("The shop in the street does not accept cards."))


def test_rows_draw_their_own_number():
    drawn = drawn_keywords("The museum shows old maps, rare coins, early clocks and many letters of sailors.")
    assert len({len(text.split()) for text in drawn}) > 2


def test_few_words_give_null():
    assert drawn_keywords("It is here.") == {None}
