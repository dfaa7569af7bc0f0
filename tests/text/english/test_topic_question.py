from __future__ import annotations

import pytest

from opencse.text.views.registry import SourceRow, TopicQuestion

TEXT = "The old bridge over the river carries heavy trucks."


def asked(text: str, rows: int = 80) -> set[str]:
    opened = TopicQuestion().open()
    return {str(view.text) for view in opened([SourceRow(id=row, text=text) for row in range(rows)])}


def test_it_asks_about_what_the_sentence_mentions() -> None:
    found = asked(TEXT)
    assert all(
        any(topic in question for topic in ("the old bridge", "the river", "heavy trucks")) for question in found
    )
    assert all(question.endswith("?") and question[0].isupper() for question in found)
    assert {question.split()[0] for question in found} >= {"What", "How", "Where", "Who", "Why"}


def test_verbs_agree_with_the_noun() -> None:
    words = {"is": "singular", "does": "singular", "are": "plural", "do": "plural"}
    for question in asked(TEXT, 300):
        first = question.lower().split(" the ")[0].split(" heavy ")[0].split()
        if first[-1] in words and "use of" not in question:
            assert words[first[-1]] == ("plural" if "trucks" in question else "singular"), question


def test_owners_and_demonstratives_are_left_out() -> None:
    found = asked("Her sister sold this house.")
    assert all("her" not in q.lower().split() and "this" not in q.split() for q in found)
    assert any("the house" in q for q in found)


def test_without_a_noun_there_is_no_question() -> None:
    assert asked("It is here.") == {"None"}
    with pytest.raises(ValueError, match="longest"):
        TopicQuestion(longest=0)
