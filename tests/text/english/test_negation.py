from __future__ import annotations

import pytest

from opencse.text.views.registry import Negation, SourceRow


@pytest.fixture(scope="module")
def negator():
    return Negation().open()


def negate(negator, *texts):
    return [view.text for view in negator([SourceRow(id=i, text=text) for i, text in enumerate(texts)])]


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
