"""Sentences, and what each kind of view makes of them: one of the texts behind the bars, or null where none stands."""

from __future__ import annotations

import pytest

from opencse.text.views.registry import CONSTRUCTORS, SourceRow

CASES = {
    "negation": """
The dog likes warm bread.|The dog does not like warm bread.
He sang and danced.|He did not sing or dance.
They like fish.|They do not like fish.
She has a red car.|She does not have a red car.
They have been to Paris.|They have not been to Paris.
The drug is safe.|The drug is not safe.
It can fly.|It cannot fly.
He's gone home.|He's not gone home.
She is probably the best player.|She is probably not the best player.
The bridge is, however, a landmark.|The bridge is, however, not a landmark.
He often visits his mother.|He does not often visit his mother.
When he was young, he moved to London, where he sang.|When he was young, he did not move to London, where he sang.
She said that he was not happy.|She did not say that he was not happy.
The museum was built in 1990 and renovated in 2000.|The museum was not built in 1990 or renovated in 2000.
Ann Lee (born May 5, 1972) is a painter.|Ann Lee (born May 5, 1972) is not a painter.
You had better leave.|
Open the door.|Do not open the door.
Please sit down.|Please do not sit down.
Is she happy?|Is she not happy?
Does she like him?|Does she not like him?
Who wrote it?|Who did not write it?
They do not like fish.|They like fish.
I don't know him.|I know him.
The man did not go home.|The man went home.
He cannot swim.|He can swim.
He can't swim.|He can swim.
She won't come.|She will come.
He never sang.|He sang.
Isn't it nice?|Is it nice?
Do not open the door.|Open the door.
the man plays a guitar|the man does not play a guitar
There is no evidence.|
She may or may not come.|
He did not see any of them.|
It was only a dream.|
A house by the river.|
These fires mainly affect the coast.|These fires do not mainly affect the coast.
Those fires mainly affect villages near the coast.|
The dashboard shows failed jobs in red.|
European monarchs adopted the style.|
Objects derived from this class watch a folder.|
If vegetarian menus are available, they typically offer soup.|
Only fresh water was ever used in the baths.|
Beware of the dog.|
""",
    "antonym_swap": """
The room is empty.|The room is full.
She has an old car.|She has a new car.
They accepted the offer.|They rejected the offer.
The harvest was larger than the last one.|The harvest was smaller than the last one.
He often reads the newspaper.|He rarely reads the newspaper.
More than 200 people came.|Less than 200 people came.
He failed to open it.|He managed to open it.
The room is not empty.|
He grew up there.|
The dog barks.|
They walk forward or backward.|
She passed the exam.|She failed the exam.
She passed the house.|
He declined the offer.|
Prices plummeted in May.|Prices soared in May.
They voted against the plan.|They voted for the plan.
They bought a plan for Peter.|They sold a plan for Peter.
She moved in on Friday.|She moved out on Friday.
She came in on Friday.|
She survived the storm.|
They live together.|They live apart.
They live together with him.|
He put on his coat.|He took off his coat.
She turned the radio off.|She turned the radio on.
The trains slowed down near the bridge.|The trains sped up near the bridge.
They turned down the offer.|They accepted the offer.
She broke her promise.|She kept her promise.
He broke the law.|He obeyed the law.
The rate fell to nine percent.|The rate rose to nine percent.
She rose to the occasion.|
The play was a failure.|The play was a success.
Most people speak French.|Few people speak French.
We left at the end of the day.|We left at the start of the day.
He hurt his left hand.|He hurt his right hand.
He has little time left.|He has much time left.
An unpaid bill lay there.|A paid bill lay there.
A village with a school lay there.|A village without a school lay there.
It was an invaluable report.|
They object to the plan.|They consent to the plan.
Register a function to convert numbers to Python objects.|
She skipped the lesson.|She attended the lesson.
Comments are skipped.|
This continues until the list ends.|
""",
    "passive": """
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
""",
    "reordering": """
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
""",
    "main_clause": """
The bridge, which was built in 1902, is safe because it was repaired.|The bridge is safe.
When the rain stopped, the old man left the house.|The old man left the house.
He missed the train, but he came home before dinner.|He missed the train.
She bought apples, pears and plums because they were cheap.|She bought apples, pears and plums.
The shop is open.|
When the rain stopped, the old man and his small grey dog left the house of the doctor in a great hurry.|
What a day|
|
""",
    "phrase_swap": """
The dog chased the cat.|The cat chased the dog.
A train runs daily from Lisbon to Porto.|A train runs daily from Porto to Lisbon.
Anna gave Peter a book.|Peter gave Anna a book.
He sold 12 cars in 40 days.|He sold 40 days in 12 cars.
A red car hit the big truck.|A big car hit the red truck.|The big truck hit a red car.
A red car hit an old lorry.|An old lorry hit a red car.
A red car hit the unique truck.|A unique car hit the red truck.|The unique truck hit a red car.
It rains.|
Tom and Ann sang.|
Tom met Ann.|
Tom accompanied Ann.|
In Rome he sang in June.|
The king is the brother.|
Lima is the capital of Peru.|Peru is the capital of Lima.
""",
}


@pytest.fixture(scope="module")
def opened():
    return {kind: CONSTRUCTORS[kind]().open() for kind in CASES}


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind in CASES for case in CASES[kind].strip().split("\n")])
def test_a_sentence_is_rewritten_or_refused(opened, kind, case):
    sentence, *rewritten = case.split("|")
    assert (opened[kind]([SourceRow(id=0, text=sentence)])[0].text or "") in rewritten
