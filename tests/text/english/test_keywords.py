from __future__ import annotations

import pytest

from opencse.text.views.registry import Keywords, SourceRow


def one(spec, text, row=0):
    return spec.open()([SourceRow(id=row, text=text)])[0].text


def test_content_words_keep_their_order():
    text = "The hotel by the lake allows small dogs in all of its rooms."
    assert one(Keywords(fewest=4, most=4), text) in ("hotel lake allows dogs", "hotel allows dogs rooms")
    assert one(Keywords(fewest=6, most=6), text) == "hotel lake allows small dogs rooms"


def test_names_stay_whole_and_negative_words_stay():
    assert "New York" in str(one(Keywords(), "The train to New York leaves the old station."))
    assert one(Keywords(fewest=2, most=2), "The shop does not accept cards.") in (
        "shop not accept",
        "not accept cards",
    )


def test_rows_draw_their_own_number():
    text = "The museum shows old maps, rare coins, early clocks and many letters of sailors."
    assert len({len(str(one(Keywords(), text, row)).split()) for row in range(12)}) > 2


def test_few_words_give_null():
    assert one(Keywords(), "It is here.") is None
    with pytest.raises(ValueError, match="fewest"):
        Keywords(fewest=5, most=4)
