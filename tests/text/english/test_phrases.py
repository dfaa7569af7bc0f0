from __future__ import annotations

from collections import Counter

from opencse.text.surface import lexical_overlap
from opencse.text.views.registry import PhraseSwap, SourceRow

TEXTS = ["The dog chased the cat.", "Anna gave Peter a book.", "He sold 12 cars in 40 days."]


def test_words_stay_and_order_changes_and_a_row_does_not_depend_on_the_others() -> None:
    rows, swapper = [SourceRow(id=i, text=text) for i, text in enumerate(TEXTS)], PhraseSwap().open(seed=1)
    views = swapper(rows)
    for row, view in zip(rows, views, strict=True):
        assert view.text is not None
        assert view.text != row.text
        words, new = (Counter(t.lower().rstrip(".").split()) for t in (row.text, view.text))
        assert new == words
        assert lexical_overlap([row.text.lower().rstrip(".")], [view.text.lower().rstrip(".")])[0] > 0.7
        assert 0 < view.scores["mer"] < 1
    assert [swapper([row])[0] for row in rows] == views
