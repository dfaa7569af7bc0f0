from __future__ import annotations

import pytest

from opencse.text.english.lexicon import opposites
from opencse.text.english.verbs import inflect
from opencse.text.views.registry import AntonymSwap, SourceRow

# sentence, word replaced ("" for null)
SWAPS = """
The room is empty.|The room is full.
She has an old car.|She has a new car.
They accepted the offer.|They rejected the offer.
The harvest was larger than the last one.|The harvest was smaller than the last one.
He often reads the newspaper.|He rarely reads the newspaper.
More than 200 people came.|Less than 200 people came.
He failed to open it.|He managed to open it.
The room is not empty.|
He grew up there.|
The dog barks.|
They walk forward or backward.|
She passed the exam.|She failed the exam.
She passed the house.|
He declined the offer.|
Prices plummeted in May.|Prices soared in May.
They voted against the plan.|They voted for the plan.
They bought a plan for Peter.|They sold a plan for Peter.
She moved in on Friday.|She moved out on Friday.
She came in on Friday.|
She survived the storm.|
They live together.|They live apart.
They live together with him.|
He put on his coat.|He took off his coat.
She turned the radio off.|She turned the radio on.
The trains slowed down near the bridge.|The trains sped up near the bridge.
They turned down the offer.|They accepted the offer.
She broke her promise.|She kept her promise.
He broke the law.|He obeyed the law.
The rate fell to nine percent.|The rate rose to nine percent.
She rose to the occasion.|
The play was a failure.|The play was a success.
Most people speak French.|Few people speak French.
We left at the end of the day.|We left at the start of the day.
He hurt his left hand.|He hurt his right hand.
He has little time left.|He has much time left.
An unpaid bill lay there.|A paid bill lay there.
A village with a school lay there.|A village without a school lay there.
It was an invaluable report.|
They object to the plan.|They consent to the plan.
Register a function to convert numbers to Python objects.|
She skipped the lesson.|She attended the lesson.
Comments are skipped.|
This continues until the list ends.|
"""


def one(opened, text):
    return opened([SourceRow(id=0, text=text)])[0].text


@pytest.fixture(scope="module")
def swapper():
    return AntonymSwap().open()


@pytest.mark.parametrize("case", SWAPS.strip().split("\n"))
def test_one_word_is_replaced(swapper, case):
    sentence, swapped = case.split("|")
    assert one(swapper, sentence) == (swapped or None)


def test_the_predicate_comes_first_where_asked():
    rows = [
        SourceRow(id=i, text=text)
        for i, text in enumerate(["The old wide road is safe."] * 20 + ["She has an old car."])
    ]
    found = [view.text for view in AntonymSwap(predicate_first=True).open(seed=3)(rows)]
    assert set(found[:20]) == {"The old wide road is dangerous."}
    assert found[20] == "She has a new car."
    assert len({view.text for view in AntonymSwap().open(seed=3)(rows[:20])}) > 1


def test_list_holds_no_word_that_is_its_own_opposite():
    for (word, pos), opposite in opposites().items():
        assert word != opposite
        if pos == "VERB":
            assert inflect(opposite, "VBD") != inflect(word, "VBD")
