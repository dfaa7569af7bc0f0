from __future__ import annotations

import pytest

from opencse.text.views.registry import RoleSwap, SourceRow

# sentence, roles exchanged ("" for null)
CASES = """
Anna admired Peter.|Peter admired Anna.
The dog chased the cat.|The cat chased the dog.
He praised the teachers.|The teachers praised him.
The king has invited them.|They have invited the king.
The police are following the thief.|The thief is following the police.
The nurse often visits the boys.|The boys often visit the nurse.
The king was killed by the soldiers.|The soldiers were killed by the king.
In 1990, the firm was bought by the bank.|In 1990, the bank was bought by the firm.
The monk cannot punish the king.|The king cannot punish the monk.
Soldiers did not attack the city.|The city did not attack soldiers.
Peter married Anna.|
He published his book.|
She laughed.|
The company bought the bank and closed it.|The bank bought the company and closed it.
"""


@pytest.fixture(scope="module")
def swapper():
    return RoleSwap().open()


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_subject_and_object_change_places(swapper, case):
    sentence, exchanged = case.split("|")
    assert swapper([SourceRow(id=0, text=sentence)])[0].text == (exchanged or None)


def test_unlike_phrases_only_if_asked(swapper):
    row = SourceRow(id=0, text="The storm destroyed the bridge.")
    assert swapper([row])[0].rule == "not alike"
    assert RoleSwap(alike=False).open()([row])[0].text == "The bridge destroyed the storm."


@pytest.mark.parametrize("text", ["Peter married Anna.", "Peter accompanied Anna.", "The team faced the club."])
def test_symmetric_verbs_keep_their_order(swapper, text):
    assert swapper([SourceRow(id=0, text=text)])[0].rule == "not alike"
