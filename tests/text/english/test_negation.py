from __future__ import annotations

import pytest

from opencse.text.views.registry import Negation, SourceRow

# sentence, its negation ("" for null)
CASES = """
The dog likes warm bread.|The dog does not like warm bread.
He sang and danced.|He did not sing or dance.
They like fish.|They do not like fish.
She has a red car.|She does not have a red car.
They have been to Paris.|They have not been to Paris.
The drug is safe.|The drug is not safe.
It can fly.|It cannot fly.
He's gone home.|He's not gone home.
She is probably the best player.|She is probably not the best player.
The bridge is, however, a landmark.|The bridge is, however, not a landmark.
He often visits his mother.|He does not often visit his mother.
When he was young, he moved to London, where he sang.|When he was young, he did not move to London, where he sang.
She said that he was not happy.|She did not say that he was not happy.
The museum was built in 1990 and renovated in 2000.|The museum was not built in 1990 or renovated in 2000.
Ann Lee (born May 5, 1972) is a painter.|Ann Lee (born May 5, 1972) is not a painter.
You had better leave.|You had better not leave.
Let's go.|Let's not go.
Open the door.|Do not open the door.
Please sit down.|Please do not sit down.
Is she happy?|Is she not happy?
Does she like him?|Does she not like him?
Who wrote it?|Who did not write it?
They do not like fish.|They like fish.
I don't know him.|I know him.
The man did not go home.|The man went home.
He cannot swim.|He can swim.
He can't swim.|He can swim.
She won't come.|She will come.
He never sang.|He sang.
Isn't it nice?|Is it nice?
Do not open the door.|Open the door.
the man plays a guitar|the man does not play a guitar
THE END IS NEAR.|THE END IS NOT NEAR.
There is no evidence.|
She may or may not come.|
He did not see any of them.|
It was only a dream.|
A house by the river.|
These fires mainly affect the coast.|These fires do not mainly affect the coast.
Those fires mainly affect villages near the coast.|
The dashboard shows failed jobs in red.|
European monarchs adopted the style.|
Objects derived from this class watch a folder.|
If vegetarian menus are available, they typically offer soup.|
Only fresh water was ever used in the baths.|
Return 1 if the list is empty, 0 otherwise.|
Beware of the dog.|
"""


@pytest.fixture(scope="module")
def negator():
    return Negation().open()


def negate(negator, *texts):
    return [view.text for view in negator([SourceRow(id=i, text=text) for i, text in enumerate(texts)])]


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_rules(negator, case):
    text, expected = case.split("|")
    assert negate(negator, text) == [expected or None]


def test_spacing_and_quotes_are_kept(negator):
    assert negate(negator, '  The "old"  cat\tis  here .\n') == ['  The "old"  cat\tis not  here .\n']


def test_scores_and_rules_are_recorded(negator):
    view, null = negator([SourceRow(id=0, text="The drug is safe."), SourceRow(id=1, text="There is no evidence.")])
    assert (view.rule, view.scores["mer"]) == ("copula", pytest.approx(1 / 5))
    assert (null.text, null.rule, null.scores["mer"]) == (None, "negative words", None)


def test_without_removal():
    assert negate(Negation(remove=False).open(), "They do not like fish.", "They like fish.") == [
        None,
        "They do not like fish.",
    ]


def test_an_antonym_where_not_cannot_stand():
    texts = ["The house is old.", "On the hill stood a tall tower."]
    assert negate(Negation(by="not-antonym").open(), *texts) == [
        "The house is not old.",
        "On the hill stood a short tower.",
    ]


def test_faithful_is_sncse():
    faithful = Negation(mode="faithful").open()
    assert negate(
        faithful,
        "The dog likes fish.",
        "He is not here.",
        "It was safe.",
        "She will come, he said.",
        "Don't go!",
        "A big house",
    ) == [
        "The dog does not like fish .",
        "He is here .",
        "It was not safe .",
        "She will not come , he said .",
        "Do not n't go !",
        "Not A big house",
    ]


def test_faithful_takes_no_options():
    with pytest.raises(ValueError, match="no options"):
        Negation(mode="faithful", remove=False)


def test_alone_as_among_others(negator):
    texts = ["The drug is safe.", "He sang and danced.", "Ann (a singer) left."]
    assert negate(negator, *texts) == [negate(negator, text)[0] for text in texts]


def test_where_words_are_only_inserted_and_stays():
    texts = ["He sang and danced.", "The museum was built in 1990 and renovated in 2000.", "Open the door and run."]
    inserted = negate(Negation(remove=False).open(), *texts)
    assert inserted[:2] == ["He did not sing and dance.", "The museum was not built in 1990 and renovated in 2000."]
    assert not any(" or " in (text or "") for text in inserted)
