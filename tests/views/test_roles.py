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
The doctor often visits the patients.|The patients often visit the doctor.|The patients are often visited by the doctor.
The king was killed by the soldiers.|The soldiers were killed by the king.|The soldiers killed the king.
In 1990, the company was bought by the bank.|In 1990, the bank was bought by the company.|In 1990, the bank bought the company.
The teacher cannot punish the student.|The student cannot punish the teacher.|The student cannot be punished by the teacher.
The soldiers did not attack the village.|The village did not attack the soldiers.|The village was not attacked by the soldiers.
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
