from __future__ import annotations

import pytest

from opencse.text.views.registry import CONSTRUCTORS, AntonymQuadruple, SourceRow
from tests.text.views.test_hostile import HOSTILE

# sentence, paraphrase, negation, antonym ("" for null)
QUADRUPLES = """
The drug is safe.|The drug is not dangerous.|The drug is not safe.|The drug is dangerous.
The road is not open.|The road is closed.|The road is open.|The road is not closed.
I left as he obeyed it.|I left as he did not disobey it.|I left as he did not obey it.|I left as he disobeyed it.
Prices rose in March.||Prices did not rise in March.|Prices fell in March.
She has put on her coat.||She has not put on her coat.|She has taken off her coat.
We chose to accept it.|We chose not to reject it.|We chose not to accept it.|We chose to reject it.
The dog barks.|||
He began to accept it.|||
Was it rejected?|||
He may accept it.|||
He accepted and read it.|||
"""


@pytest.fixture(scope="module")
def opened():
    return AntonymQuadruple(contract=0.0, several=0.0).open()


@pytest.mark.parametrize("case", QUADRUPLES.strip().split("\n"))
def test_all_turn_on_the_same_word(opened, case):
    sentence, *expected = case.split("|")
    assert [view.text or "" for view in opened([SourceRow(id=0, text=sentence)])[0]] == expected


def test_columns_are_named_after_the_parts():
    assert CONSTRUCTORS["antonym_quadruple"] is AntonymQuadruple
    assert AntonymQuadruple().columns("place") == ("place_paraphrase", "place_negation", "place_antonym")


def test_other_predicates_are_rewritten_alike_in_all_views():
    rows = [SourceRow(id=i, text="The lake is deep and, as he says, the ice is thin.") for i in range(20)]
    for views in AntonymQuadruple(contract=0.0, several=1.0).open()(rows):
        texts = [view.text or "" for view in views]
        shared = [word for word in ("not shallow", "not thick") if all(word in text for text in texts)]
        assert len(shared) == 1, texts


def test_an_empty_row_and_a_share_out_of_range():
    assert {view.text for view in AntonymQuadruple().open()([SourceRow(id=0, text=" ")])[0]} == {None}
    with pytest.raises(ValueError, match="several"):
        AntonymQuadruple(several=-1)


def test_hostile_sentences_give_three_valid_views_or_nulls(opened):
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(HOSTILE)]
    for views in opened(rows):
        assert len(views) == 3
        assert all(view.rule and (view.text is None or isinstance(view.text, str)) for view in views)
