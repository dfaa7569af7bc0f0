from __future__ import annotations

import pytest

from opencse.views import Passive, RoleSwap, Row

# sentence, roles exchanged, other voice ("" for null)
CASES = """
Anna admired Peter.|Peter admired Anna.|Peter was admired by Anna.
The dog chased the cat.|The cat chased the dog.|The cat was chased by the dog.
He praised the teachers.|The teachers praised him.|The teachers were praised by him.
The king has invited them.|They have invited the king.|They have been invited by the king.
The police are following the thief.|The thief is following the police.|The thief is being followed by the police.
The nurse often visits the boys.|The boys often visit the nurse.|The boys are often visited by the nurse.
The king was killed by the soldiers.|The soldiers were killed by the king.|The soldiers killed the king.
In 1990, the firm was bought by the bank.|In 1990, the bank was bought by the firm.|In 1990, the bank bought the firm.
The monk cannot punish the king.|The king cannot punish the monk.|The king cannot be punished by the monk.
Soldiers did not attack the city.|The city did not attack soldiers.|The city was not attacked by soldiers.
Peter married Anna.||
He published his book.||
She laughed.||
The company bought the bank and closed it.|The bank bought the company and closed it.|
"""


@pytest.fixture(scope="module")
def swapper():
    return RoleSwap().open()


@pytest.fixture(scope="module")
def voice():
    return Passive().open()


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_rules(swapper, voice, case):
    sentence, exchanged, other = case.split("|")
    assert swapper([Row(id=0, text=sentence)])[0].text == (exchanged or None)
    assert voice([Row(id=0, text=sentence)])[0].text == (other or None)


def test_unlike_phrases_only_if_asked(swapper):
    row = Row(id=0, text="The storm destroyed the bridge.")
    assert swapper([row])[0].rule == "not alike"
    assert RoleSwap(alike=False).open()([row])[0].text == "The bridge destroyed the storm."
