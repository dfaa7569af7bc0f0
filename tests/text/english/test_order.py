from __future__ import annotations

import pytest

from opencse.text.views.registry import Reordering, SourceRow

CASES = """
In 1990, he left the city.|He left the city in 1990.
He left the city in 1990.|In 1990, he left the city.
When the war began, she moved to London.|She moved to London when the war began.
She moved to London when the war began.|When the war began, she moved to London.
He visited the cats and the dogs.|He visited the dogs and the cats.
She met Peter and Anna.|She met Anna and Peter.
He visited the cats and dogs.|He visited the dogs and cats.
She met Peter, Carl and Anna.|She met Anna, Carl and Peter.
In 1990, the king left the city.|The king, in 1990, left the city.|The king left the city in 1990.
After the war, the king died.|The king, after the war, died.|The king died after the war.
The children played in the garden.|In the garden, the children played.
He loves old men and women.|
He chose a simple and elegant proof.|
The rates fell in Latvia (7.9%), Romania (6.8%) and Estonia (5.5%).|
The mayor is facing re-election or replacement.|
In his youth, the king left the city, which was small.|
The first and second child were ill.|
The king met the queen and her daughters.|
He sang.|
In 1990, he moved to the city, where he met Ann.|
"""


@pytest.fixture(scope="module")
def opened():
    return Reordering().open()


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_rules(opened, case):
    sentence, *moved = case.split("|")
    assert opened([SourceRow(id=0, text=sentence)])[0].text in [new or None for new in moved]
