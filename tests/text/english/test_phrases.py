from __future__ import annotations

from collections import Counter

import pytest

from opencse.text.surface import lexical_overlap
from opencse.text.views.registry import PhraseSwap, SourceRow

# sentence, what may come out of it ("" for null)
CASES = {
    "The dog chased the cat.": {"The cat chased the dog."},
    "A train runs daily from Lisbon to Porto.": {"A train runs daily from Porto to Lisbon."},
    "Anna gave Peter a book.": {"Peter gave Anna a book."},
    "He sold 12 cars in 40 days.": {"He sold 40 days in 12 cars."},
    "A red car hit the big truck.": {"A big car hit the red truck.", "The big truck hit a red car."},
    "A red car hit an old lorry.": {"An old lorry hit a red car."},
    "A red car hit the unique truck.": {"A unique car hit the red truck.", "The unique truck hit a red car."},
    "It rains.": {""},
    "Tom and Ann sang.": {""},  # coordinated: nothing would change
    "Tom met Ann.": {""},  # the verb is symmetric
    "Tom accompanied Ann.": {""},
    "In Rome he sang in June.": {""},  # two like places in the sentence
    "The king is the brother.": {""},
    "Lima is the capital of Peru.": {"Peru is the capital of Lima."},
    "": {""},
}


@pytest.fixture(scope="module")
def swapper():
    return PhraseSwap().open(seed=1)


@pytest.mark.parametrize("text", CASES)
def test_swaps(swapper, text) -> None:
    (view,) = swapper([SourceRow(id=0, text=text)])
    assert (view.text or "") in CASES[text], view


def test_words_stay_and_order_changes(swapper) -> None:
    texts = [text for text, out in CASES.items() if out != {""}]
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(texts)]
    for row, view in zip(rows, swapper(rows), strict=True):
        assert view.text is not None
        assert view.text != row.text
        words, new = (Counter(t.lower().rstrip(".").split()) for t in (row.text, view.text))
        assert new == words
        assert lexical_overlap([row.text.lower().rstrip(".")], [view.text.lower().rstrip(".")])[0] > 0.7
        assert 0 < view.scores["mer"] < 1


def test_a_row_does_not_depend_on_the_others(swapper) -> None:
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(CASES)]
    assert [swapper([row])[0] for row in rows] == swapper(rows)
