"""Sentences, and what each kind of view makes of them: one of the texts behind the bars, or null where none stands."""

from __future__ import annotations

import pytest

from opencse.text.english.clause import attribute_clause
from opencse.text.english.one_word import possible_edits
from opencse.text.english.parse import parse_without_asides
from opencse.text.languages import ENGLISH
from opencse.text.syntax import apply_edits, load_parser
from opencse.text.views.registry import VIEWS, Negation, NegativeWord, RolePairs, SourceRow

CASES = {
    "negation": """
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
Please sit down.|Please do not sit down.
Is she happy?|Is she not happy?
Does she like him?|Does she not like him?
Who wrote it?|Who did not write it?
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
A house by the river.|
These fires mainly affect the coast.|These fires do not mainly affect the coast.
Those fires mainly affect villages near the coast.|
The dashboard shows failed jobs in red.|
European monarchs adopted the style.|
Objects derived from this class watch a folder.|
If vegetarian menus are available, they typically offer soup.|
Only fresh water was ever used in the baths.|
Beware of the dog.|
Number of backups to keep before old ones are removed.|
New backups are created before old ones are removed.|New backups are not created before old ones are removed.
The tool abstracts the details away and assigns names.|
They play in a hall which was built last year and accommodates fifty people.|
The team opens the gate, counts the visitors and closes it.|
He takes off his coat and hangs it up.|He does not take off his coat or hang it up.
""",
    "antonym_swap": """
The room is empty.|The room is full.
The harvest was larger than the last one.|The harvest was smaller than the last one.
He often reads the newspaper.|He rarely reads the newspaper.
More than 200 people came.|Less than 200 people came.
He failed to open it.|He managed to open it.
The room is not empty.|
He grew up there.|
This allows for changes.|
The fund provides for the poor.|
The rule allows bicycles to pass.|The rule forbids bicycles to pass.
The tables were dropped.|
They walk forward or backward.|
She passed the exam.|She failed the exam.
She passed the house.|
He declined the offer.|
They voted against the plan.|They voted for the plan.
They bought a plan for Peter.|They sold a plan for Peter.
She moved in on Friday.|She moved out on Friday.
She came in on Friday.|
She survived the storm.|
They live together.|They live apart.
They live together with him.|
He put on his coat.|He took off his coat.
She turned the radio off.|She turned the radio on.
They turned down the offer.|They accepted the offer.
She broke her promise.|She kept her promise.
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
He visited the cats and dogs.|He visited the dogs and cats.
She met Peter, Carl and Anna.|She met Anna, Carl and Peter.
In 1990, the king left the city.|The king, in 1990, left the city.|The king left the city in 1990.
In 1990 (a cold year), he left the city.|He left the city in 1990 (a cold year).
He left the city (by train) in 1990.|In 1990, he left the city (by train).
In 1990, the king (II) left the city.|The king (II), in 1990, left the city.|The king (II) left the city in 1990.
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
    return {kind: VIEWS[kind]().open() for kind in CASES}


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in CASES for case in CASES[kind].strip().split("\n")]
)
def test_a_sentence_is_rewritten_or_refused(opened, kind, case):
    sentence, *rewritten = case.split("|")
    assert (opened[kind]([SourceRow(id=0, text=sentence)])[0].text or "") in rewritten


@pytest.fixture(scope="module")
def negator():
    return Negation().open()


def negate(negator, *texts):
    return [
        view.text for view in negator([SourceRow(id=i, text=text) for i, text in enumerate(texts)])
    ]


def test_negations_keep_spacing_have_scores_and_depend_on_the_sentence_alone(negator):
    assert negate(negator, '  The "old"  cat\tis  here .\n') == [
        '  The "old"  cat\tis not  here .\n'
    ]
    view, null = negator(
        [SourceRow(id=0, text="The drug is safe."), SourceRow(id=1, text="There is no evidence.")]
    )
    assert (view.rule, view.scores["mer"]) == ("copula", pytest.approx(1 / 5))
    assert (null.text, null.rule, null.scores["mer"]) == (None, "negative words", None)
    assert (
        negate(negator, "Not all birds can fly.", "How tall is the tower?", "Is there a way?")
        == [None] * 3
    )
    texts = ["The drug is safe.", "He sang and danced.", "Ann (a singer) left."]
    assert negate(negator, *texts) == [negate(negator, text)[0] for text in texts]


def test_without_removal_words_are_only_inserted_and_and_stays():
    assert negate(Negation(remove=False).open(), "They do not like fish.", "They like fish.") == [
        None,
        "They do not like fish.",
    ]
    texts = [
        "He sang and danced.",
        "The museum was built in 1990 and renovated in 2000.",
        "Open the door and run.",
    ]
    inserted = negate(Negation(remove=False).open(), *texts)
    assert inserted[:2] == [
        "He did not sing and dance.",
        "The museum was not built in 1990 and renovated in 2000.",
    ]
    assert not any(" or " in (text or "") for text in inserted)


def test_an_antonym_where_not_cannot_stand():
    texts = ["The house is old.", "On the hill stood a tall tower."]
    assert negate(Negation(by="not-antonym").open(), *texts) == [
        "The house is not old.",
        "On the hill stood a short tower.",
    ]


def test_faithful_is_sncse_and_takes_no_options():
    faithful = Negation(mode="faithful").open()
    assert negate(
        faithful,
        "The dog likes fish.",
        "He is not here.",
        "It was safe.",
        "She will come, he said.",
        "Don't go!",
        "A big house",
        "Is he ill?",
    ) == [
        "The dog does not like fish .",
        "He is here .",
        "It was not safe .",
        "She will not come , he said .",
        "Do not n't go !",
        "Not A big house",
        "Is not he ill ?",
    ]
    with pytest.raises(ValueError, match="no options"):
        Negation(mode="faithful", remove=False)


# sentence, roles exchanged ("" for null)
ROLES = """
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


def both(role_pairs, text):
    return [view.text or "" for view in role_pairs([SourceRow(id=0, text=text)])[0]]


@pytest.fixture(scope="module")
def role_pairs():
    return RolePairs().open()


@pytest.mark.parametrize("case", ROLES.strip().split("\n"))
def test_subject_and_object_change_places(role_pairs, case):
    sentence, exchanged = case.split("|")
    assert both(role_pairs, sentence)[1] == exchanged


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
def test_roles_are_kept_and_exchanged(role_pairs, case):
    sentence, *expected = case.split("|")
    assert both(role_pairs, sentence) == expected


ONE_WORD = """
Every baker on our street washed his hands.|No baker on our street washed his hands.
All the runners reached the top.|None of the runners reached the top.
Someone rang the bell.|No one rang the bell.
He often walks to the office.|He rarely walks to the office.
The bridge is still closed.|The bridge is no longer closed.
The choir will sing in June.|The choir will never sing in June.
She drinks tea.|She never drinks tea.|She no longer drinks tea.|She fails to drink tea.
She needs water.|She never needs water.|She no longer needs water.
He found cracks.|He never found cracks.|He failed to find cracks.|He found no cracks.
He found several cracks.|He never found several cracks.|He failed to find several cracks.
He found only small cracks.|He never found only small cracks.|He failed to find only small cracks.
She wrote a letter.|She never wrote a letter.|She failed to write a letter.|She wrote no letter.
Ann has never lost a match.|Ann has always lost a match.
Nobody came to the party.|Somebody came to the party.
She left without her keys.|She left with her keys.
There are no trees on the hill.|There are some trees on the hill.
He no longer sings.|He still sings.
Did the choir sing in June?
They never said nothing.
On the hill stood a tower.
"""


@pytest.fixture(scope="module")
def parser():
    return load_parser("syntax")


@pytest.mark.parametrize("case", ONE_WORD.strip().split("\n"))
def test_all_that_can_be_done(parser, case) -> None:
    sentence, *expected = case.split("|")
    (tokens,) = parse_without_asides(parser, [sentence])
    assert [
        apply_edits(sentence, edits) for edits, _ in possible_edits(sentence, tokens)
    ] == expected


def test_one_of_the_ways_is_drawn_by_the_seed() -> None:
    rows = [SourceRow(id=i, text="The plumber found cracks.") for i in range(30)]
    made = [[view.text for view in NegativeWord().open(seed=seed)(rows)] for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert set(made[0]) == {
        "The plumber never found cracks.",
        "The plumber failed to find cracks.",
        "The plumber found no cracks.",
    }


def test_none_where_there_is_no_place(parser) -> None:
    (view,) = NegativeWord().open()([SourceRow(id=0, text="On the hill stood a tower.")])
    assert (view.text, view.rule) == (None, "no place for it")


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("He saw the dirty water of the lake.", "dirty", "The water of the lake was dirty."),
        ("They sell cheap shoes.", "cheap", "The shoes are cheap."),
        ("She has a loud voice.", "loud", "The voice is loud."),
        ("Her loud voice woke us.", "loud", "Her voice was loud."),
        ("He knows no safe place.", "safe", None),
        ("The water is dirty.", "dirty", None),  # said outright
        ("They met the late John Smith.", "late", None),  # a name is no common noun
        ("A cold and dirty river runs there.", "cold", None),  # two adjectives joined
        ("It rains.", "dirty", None),
    ],
)
def test_what_is_said_in_passing(parser, text, word, expected) -> None:
    (tokens,) = parse_without_asides(parser, [text])
    assert attribute_clause(text, tokens, word) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("The water is dirty.", True), ("The dirty water is cold.", False)]
)
def test_what_is_said_outright(parser, text, expected) -> None:
    (tokens,) = parse_without_asides(parser, [text])
    assert (ENGLISH.statement(text, tokens, "dirty") == text) is expected
