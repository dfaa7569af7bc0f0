from __future__ import annotations

import pytest

from opencse.text.views.registry import RolePairs, SourceRow

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
Peter accompanied Anna.|
The team faced the club.|
The storm destroyed the bridge.|
The firm sold its oldest ship.|
"""


def both(opened, text):
    return [view.text or "" for view in opened([SourceRow(id=0, text=text)])[0]]


@pytest.fixture(scope="module")
def opened():
    return RolePairs().open()


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_subject_and_object_change_places(opened, case):
    sentence, exchanged = case.split("|")
    assert both(opened, sentence)[1] == exchanged


# sentence, the same roles, the roles exchanged ("" for null)
PAIRS = """
The lawyer sued the baker.|The baker was sued by the lawyer.|The baker sued the lawyer.
I know that he beat the bank.|I know that the bank was beaten by him.|I know that the bank beat him.
She left before the train arrived.|Before the train arrived, she left.|The train arrived before she left.
After the guests left, the cook washed the plates.|The cook washed the plates after the guests left.|After the cook washed the plates, the guests left.
The cook slept soon after we left.||
They walked from Bern to Basel.|They walked to Basel from Bern.|They walked from Basel to Bern.
The dog barks.||
The price ranges from Monday to Friday.||
Did the lawyer sue the baker?||
"""  # noqa: E501


@pytest.mark.parametrize("case", PAIRS.strip().split("\n"))
def test_roles_are_kept_and_exchanged(opened, case):
    sentence, *expected = case.split("|")
    assert both(opened, sentence) == expected
