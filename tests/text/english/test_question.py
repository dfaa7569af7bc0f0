from __future__ import annotations

import pytest

from opencse.text.views.registry import Question, SourceRow

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


@pytest.fixture(scope="module", params=[0.0, 1.0])
def asked(request):
    return request.param, Question(subjects=request.param).open()


def test_a_statement_becomes_a_question(asked):
    share, opened = asked
    for case in (SUBJECTS if share else QUESTIONS).strip().split("\n"):
        statement, question = case.split("|")
        assert one(opened, statement) == (question or None)


def test_long_questions_are_left_out():
    assert one(Question(subjects=0.0, longest=3).open(), "The shop opens at nine.") is None
    with pytest.raises(ValueError, match="share"):
        Question(subjects=1.5)


def test_a_share_of_the_questions_begins_with_an_adverb():
    opened = Question(subjects=0.0, adverbs=1.0).open()
    asked = {opened([SourceRow(id=number, text="Refunds are allowed.")])[0].text for number in range(20)}
    assert asked == {f"{word} are refunds allowed?" for word in ("Why", "How", "When")}
    with pytest.raises(ValueError, match="adverbs"):
        Question(adverbs=-0.1)
