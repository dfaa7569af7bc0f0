from __future__ import annotations

import pytest

from opencse.text.views.registry import Passive, SourceRow

# sentence, the other voice ("" for null)
CASES = """
Anna admired Peter.|Peter was admired by Anna.
The dog chased the cat.|The cat was chased by the dog.
He praised the teachers.|The teachers were praised by him.
The king has invited them.|They have been invited by the king.
The police are following the thief.|The thief is being followed by the police.
The nurse often visits the boys.|The boys are often visited by the nurse.
The king was killed by the soldiers.|The soldiers killed the king.
In 1990, the firm was bought by the bank.|In 1990, the bank bought the firm.
The monk cannot punish the king.|The king cannot be punished by the monk.
Soldiers did not attack the city.|The city was not attacked by soldiers.
Peter married Anna.|
He published his book.|
She laughed.|
The company bought the bank and closed it.|
"""


@pytest.fixture(scope="module")
def voice():
    return Passive().open()


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_the_voice_changes_and_the_roles_stay(voice, case):
    sentence, other = case.split("|")
    assert voice([SourceRow(id=0, text=sentence)])[0].text == (other or None)
