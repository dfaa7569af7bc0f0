from __future__ import annotations

import random

import pytest

from opencse.text.syntax.tokens import Token
from opencse.text.views.registry import NegatedAntonym, SourceRow

# sentence, paraphrase ("" for null)
PARAPHRASES = """
The drug is safe.|The drug is not dangerous.
It was an easy task.|It was not a difficult task.
The road is not safe.|The road is dangerous.
It isn't possible.|It is impossible.
The answer is also correct.|The answer is also not incorrect.
They accepted the offer.|They did not reject the offer.
The village lacks a school.|The village does not possess a school.
She knows that the river is deep.|She knows that the river is not shallow.
The request was accepted after a week.|The request was not rejected after a week.
We cheered because the judges approved the plan.|We cheered because the judges did not reject the plan.
The nurse who remembered the password went home.|The nurse who did not forget the password went home.
If the motion is rejected, the club closes.|If the motion is not accepted, the club closes.
They did not obey the order.|They disobeyed the order.
She managed to open the window.|She did not fail to open the window.
He kept his promise, although it was late.|He did not break his promise, although it was late.
The committee turned down the offer.|The committee did not accept the offer.
The concert was a success.|The concert was not a failure.
Prices rose in March.|
He can accept the gift.|
The western part is green.|
He is responsible for it.|
Is it safe?|
"""


def one(opened, text):
    return opened([SourceRow(id=0, text=text)])[0].text


@pytest.fixture(scope="module")
def negator():
    return NegatedAntonym(contract=0.0, several=0.0).open()


@pytest.mark.parametrize("case", PARAPHRASES.strip().split("\n"))
def test_the_opposite_is_negated(negator, case):
    sentence, negated = case.split("|")
    assert one(negator, sentence) == (negated or None)


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
    assert NegatedAntonym(contract=0.0).rewrite(text, tokens, random.Random(0)) == (None, "no antonym")


def test_contractions_come_by_share_and_row():
    rows = [SourceRow(id=i, text="The drug is safe.") for i in range(40)]
    made = [view.text for view in NegatedAntonym(contract=0.5).open(seed=1)(rows)]
    assert set(made) == {"The drug is not dangerous.", "The drug isn't dangerous."}
    assert 8 < sum("n't" in text for text in made) < 32
    assert made[7] == NegatedAntonym(contract=0.5).open(seed=1)(rows[7:8])[0].text
    with pytest.raises(ValueError, match="share"):
        NegatedAntonym(contract=2)


def test_several_predicates_of_a_long_sentence_are_rewritten():
    rows = [
        SourceRow(id=i, text="The plan was accepted because the bridge is safe, and the road is open.")
        for i in range(30)
    ]
    made = {view.text for view in NegatedAntonym(contract=0.0, several=1.0).open()(rows)}
    assert made == {"The plan was not rejected because the bridge is not dangerous, and the road is not closed."}
    assert len({view.text for view in NegatedAntonym(contract=0.0, several=0.5).open()(rows)}) > 3


def test_pairs_that_are_held_out_are_never_used():
    rows = [SourceRow(id=0, text="The drug is safe.")]
    held = [parts for parts in range(1, 12) if NegatedAntonym(hold_out=parts).open()(rows)[0].text is None]
    assert 1 in held
    assert 1 < len(held) < 11
