from __future__ import annotations

import random

import pytest

from opencse.text.english.lexicon import inflect, opposites
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import Token, load_parser
from opencse.text.views.registry import AntonymQuadruple, AntonymSwap, NegatedAntonym, SourceRow


class Fixed(random.Random):
    """Draws 0.99: no contraction, and no second predicate; or 0.0 for both."""

    def __init__(self, drawn: float) -> None:
        super().__init__(0)
        self.drawn = drawn

    def random(self) -> float:
        return self.drawn


def rewritten(spec, text, drawn=0.99):
    (tokens,) = parse_without_asides(load_parser(), [text])
    return spec.rewrite(text, tokens, Fixed(drawn))


def test_the_predicate_comes_first_where_asked():
    rows = [
        SourceRow(id=i, text=text)
        for i, text in enumerate(["The old wide road is safe."] * 20 + ["She has an old car."])
    ]
    found = [view.text for view in AntonymSwap(predicate_first=True).open(seed=3)(rows)]
    assert set(found[:20]) == {"The old wide road is dangerous."}
    assert found[20] == "She has a new car."
    assert len({view.text for view in AntonymSwap().open(seed=3)(rows[:20])}) > 1


def test_list_holds_no_word_that_is_its_own_opposite():
    for (word, pos), opposite in opposites().items():
        assert word != opposite
        if pos == "VERB":
            assert inflect(opposite, "VBD") != inflect(word, "VBD")


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
He kept his promise, although it rained.|He did not break his promise, although it rained.
The committee turned down the offer.|The committee did not accept the offer.
The concert was a success.|The concert was not a failure.
Prices rose in March.|
He can accept the gift.|
The western part is green.|
He is responsible for it.|
Is it safe?|
"""


@pytest.mark.parametrize("case", PARAPHRASES.strip().split("\n"))
def test_the_opposite_is_negated(case):
    sentence, negated = case.split("|")
    assert rewritten(NegatedAntonym(), sentence)[0] == (negated or None)


def test_a_verb_after_an_article_is_a_parse_not_to_trust():
    text = "He an accepted it."
    words = [("He", "PRP", "PRON", "nsubj"), ("an", "DT", "DET", "det"), ("accepted", "VBD", "VERB", "ROOT")]
    words += [("it", "PRP", "PRON", "obj"), (".", ".", "PUNCT", "punct")]
    tokens = [
        Token(
            text=word,
            start=text.index(word),
            end=text.index(word) + len(word),
            lemma=word.lower().removesuffix("ed"),
            tag=tag,
            pos=pos,
            head=2,
            relation=relation,
        )
        for word, tag, pos, relation in words
    ]
    assert NegatedAntonym().rewrite(text, tokens, random.Random(0)) == (None, "no antonym")


def test_half_of_the_sentences_have_contractions():
    rows = [SourceRow(id=i, text="The drug is safe.") for i in range(40)]
    made = [view.text for view in NegatedAntonym().open(seed=1)(rows)]
    assert set(made) == {"The drug is not dangerous.", "The drug isn't dangerous."}
    assert 8 < sum("n't" in text for text in made) < 32
    assert made[7] == NegatedAntonym().open(seed=1)(rows[7:8])[0].text


def test_several_predicates_of_a_long_sentence_are_rewritten():
    text = "The plan was accepted because the bridge is safe, and the road is open."
    all_three = "The plan wasn't rejected because the bridge isn't dangerous, and the road isn't closed."
    assert rewritten(NegatedAntonym(), text, 0.0)[0] == all_three
    rows = [SourceRow(id=i, text=text) for i in range(30)]
    assert len({view.text.replace("n't", " not") for view in NegatedAntonym().open()(rows)}) > 3


# sentence, paraphrase, negation, antonym ("" for null)
QUADRUPLES = """
The drug is safe.|The drug is not dangerous.|The drug is not safe.|The drug is dangerous.
The road is not open.|The road is closed.|The road is open.|The road is not closed.
I left as he obeyed it.|I left as he did not disobey it.|I left as he did not obey it.|I left as he disobeyed it.
Prices rose in March.||Prices did not rise in March.|Prices fell in March.
She has put on her coat.||She has not put on her coat.|She has taken off her coat.
We chose to accept it.|We chose not to reject it.|We chose not to accept it.|We chose to reject it.
The dog barks.|||
He began to accept it.|||
Was it rejected?|||
He may accept it.|||
He accepted and read it.|||
"""


@pytest.mark.parametrize("case", QUADRUPLES.strip().split("\n"))
def test_all_turn_on_the_same_word(case):
    sentence, *expected = case.split("|")
    assert [text or "" for text, _ in rewritten(AntonymQuadruple(), sentence)] == expected


def test_other_predicates_are_rewritten_alike_in_all_views():
    texts = [
        text for text, _ in rewritten(AntonymQuadruple(), "The lake is deep and, as he says, the ice is thin.", 0.0)
    ]
    shared = [word for word in ("not shallow", "not thick") if all(word in text for text in texts)]
    assert len(shared) == 1, texts
