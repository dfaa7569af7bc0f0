from __future__ import annotations

import pytest

from opencse.text.views.registry import MainClause, SourceRow

CASES = {
    "The bridge, which was built in 1902, is safe because it was repaired.": "The bridge is safe.",
    "When the rain stopped, the old man left the house.": "The old man left the house.",
    "He missed the train, but he came home before dinner.": "He missed the train.",
    "She bought apples, pears and plums because they were cheap.": "She bought apples, pears and plums.",
    "The shop is open.": "",
    "What a day": "",
    "": "",
}


@pytest.fixture(scope="module")
def cutter():
    return MainClause().open()


@pytest.mark.parametrize("text", CASES)
def test_cuts(cutter, text) -> None:
    (view,) = cutter([SourceRow(id=0, text=text)])
    assert (view.text or "") == CASES[text], view


def test_length_limits() -> None:
    row = SourceRow(id=0, text="When the rain stopped, the old man left the house.")
    (view,) = MainClause(words=(3, 5)).open()([row])
    assert (view.text, view.rule) == (None, "too long")
    with pytest.raises(ValueError, match="minimum and a maximum"):
        MainClause(words=(9, 3))
