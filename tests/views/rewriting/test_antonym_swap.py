from __future__ import annotations

import random

import pytest

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import inflect
from opencse.views import AntonymSwap, NegatedAntonym, Row
from opencse.views.rewriting.antonym_swap import _denied
from opencse.views.rewriting.opposites import _table

# sentence, word replaced ("" for null)
SWAPS = """
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
"""
DENIALS = """
The drug is safe.|The drug is not dangerous.
It was an easy task.|It was not a difficult task.
The road is not safe.|The road is dangerous.
It isn't possible.|It is impossible.
The answer is also correct.|The answer is also not incorrect.
They accepted the offer.|They did not reject the offer.
The village lacks a school.|The village does not possess a school.
She knows that the river is deep.|She knows that the river is not shallow.
The western part is green.|
He is responsible for it.|
Is it safe?|
"""


def one(opened, text):
    return opened([Row(id=0, text=text)])[0].text


@pytest.fixture(scope="module")
def swapper():
    return AntonymSwap().open()


@pytest.fixture(scope="module")
def denier():
    return NegatedAntonym(contract=0.0).open()


@pytest.mark.parametrize("case", SWAPS.strip().split("\n"))
def test_one_word_is_replaced(swapper, case):
    sentence, swapped = case.split("|")
    assert one(swapper, sentence) == (swapped or None)


@pytest.mark.parametrize("case", DENIALS.strip().split("\n"))
def test_the_opposite_is_denied(denier, case):
    sentence, denied = case.split("|")
    assert one(denier, sentence) == (denied or None)


def test_a_verb_after_an_article_is_a_parse_not_to_trust():
    words = ["He", "an", "accepted", "it", "."]
    relations = [
        ("PRP", "PRON", 2, "nsubj"),
        ("DT", "DET", 2, "det"),
        ("VBD", "VERB", 2, "ROOT"),
        ("PRP", "PRON", 2, "obj"),
    ]
    relations.append((".", "PUNCT", 2, "punct"))
    text, tokens, at = "He an accepted it.", [], 0
    for word, (tag, pos, head, relation) in zip(words, relations, strict=True):
        at = text.index(word, at)
        lemma = "accept" if word == "accepted" else word.lower()
        tokens.append(
            Token(text=word, start=at, end=at + len(word), lemma=lemma, tag=tag, pos=pos, head=head, relation=relation)
        )
    assert _denied(text, tokens, random.Random(0), contract=False) == (None, "no antonym")


def test_the_predicate_comes_first_where_asked():
    rows = [
        Row(id=i, text=text) for i, text in enumerate(["The old wide road is safe."] * 20 + ["She has an old car."])
    ]
    found = [view.text for view in AntonymSwap(predicate_first=True).open(seed=3)(rows)]
    assert set(found[:20]) == {"The old wide road is dangerous."}
    assert found[20] == "She has a new car."
    assert len({view.text for view in AntonymSwap().open(seed=3)(rows[:20])}) > 1


def test_contractions_come_by_share_and_row():
    rows = [Row(id=i, text="The drug is safe.") for i in range(40)]
    made = [view.text for view in NegatedAntonym(contract=0.5).open(seed=1)(rows)]
    assert set(made) == {"The drug is not dangerous.", "The drug isn't dangerous."}
    assert 8 < sum("n't" in text for text in made) < 32
    assert made[7] == NegatedAntonym(contract=0.5).open(seed=1)(rows[7:8])[0].text
    with pytest.raises(ValueError, match="share"):
        NegatedAntonym(contract=2)


def test_list_holds_no_word_that_is_its_own_opposite():
    for (word, pos), opposite in _table().items():
        assert word != opposite
        if pos == "VERB":
            assert inflect(opposite, "VBD") != inflect(word, "VBD")
