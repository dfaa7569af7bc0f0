"""Word lists, word forms and articles."""

from __future__ import annotations

import csv
import gzip
import random
from pathlib import Path

import pytest

from opencse.text.english import lexicon
from opencse.text.english.lexicon import (
    article_edits,
    base_form,
    gerund,
    indefinite_article,
    inflect,
    is_past,
    opposites,
    participle,
    past,
    third_person,
)
from opencse.text.english.opposites import opposed_adjectives, opposed_verbs
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import Token, apply_edits, load_parser
from opencse.text.views.registry import AntonymQuadruple, AntonymSwap, NegatedAntonym, SourceRow


def test_opposites_by_prefix_and_which_are_complementary():
    for stem, negative in (
        ("possible", "impossible"),
        ("legal", "illegal"),
        ("regular", "irregular"),
    ):
        assert lexicon.affixed("in", stem) == (stem, negative)
    assert lexicon.affixed("in", "visible") == ("visible", "invisible")
    assert lexicon.affixed("less", "harm") == ("harmful", "harmless")
    negated = {
        word
        for word, _ in lexicon.opposites()
        if word
        in set(
            """invaluable infamous priceless inflammable disgruntled uncanny unkempt ruthless invest indifferent disease
            distance discover unless union united""".split()
        )
    }
    assert negated == {"priceless"}  # of "worthless", as the list has it
    for word, wrong in (
        ("famous", "infamous"),
        ("valuable", "invaluable"),
        ("flammable", "inflammable"),
    ):
        assert lexicon.opposites()[word, "ADJ"] != wrong
    assert lexicon.is_complementary("accept", "VERB")
    assert lexicon.is_complementary("unfinished", "ADJ")  # by its prefix
    assert not lexicon.is_complementary("rise", "VERB")
    assert not lexicon.is_complementary("bigger", "ADJ")
    assert not lexicon.is_complementary("summer", "NOUN")


RULES = [
    "classes",
    "contexts",
    "infinitives",
    "irregular_verbs",
    "negative_words",
    "topic_questions",
]


@pytest.mark.parametrize("table", ["opposites", "affixes", "particles", "collocations", *RULES])
def test_no_row_is_repeated(table):
    rows = lexicon.lexicon_bytes(table).decode().strip("\n").split("\n")
    assert len(set(rows)) == len(rows)
    assert len({row.count("\t") for row in rows}) == 1


def test_no_word_or_form_is_its_own_opposite():
    entries = [
        (verb, entry)
        for verb, listed in lexicon.opposed_phrases("collocations").items()
        for entry in listed
    ]
    assert all(inflect(verb, "VBD") != inflect(entry.opposite, "VBD") for verb, entry in entries)
    for phrase, listed in lexicon.opposed_phrases("particles").items():
        for entry in listed:
            assert len(entry.objects) == 1 or not entry.objects & {"yes", "no", "any"}
            assert entry.opposite != phrase
    for (word, pos), opposite in opposites().items():
        assert word != opposite
        if pos == "VERB":
            assert inflect(opposite, "VBD") != inflect(word, "VBD")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The road is safe.", {"safe": "dangerous"}),
        ("It was an easy, cheap task.", {"easy": "difficult", "cheap": "expensive"}),
        ("A high-speed train, an old-fashioned one.", {}),
        (
            "Safe is its name.",
            {},
        ),  # as the first word a capital hides it: one sentence more or less
        ("He is a dentist.", {}),
        ("", {}),
    ],
)
def test_words_that_have_an_opposite(text, expected) -> None:
    assert opposed_adjectives(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They accepted the offer.", {"to accept": "to reject"}),
        ("She keeps every promise that she makes.", {"to keep": "to break"}),
        ("She keeps a dog.", {}),  # only with certain objects
        ("Prices rose in March.", {}),  # not complementary
        ("", {}),
    ],
)
def test_verbs_that_have_a_complementary_opposite(text, expected) -> None:
    assert opposed_verbs(text) == expected


FORMS = """
sing sings sang sung singing|be is was been being|have has had had having|do does did done doing|go goes went gone going
put puts put put putting|stop stops stopped stopped stopping|hope hopes hoped hoped hoping|try tries tried tried trying
play plays played played playing|watch watches watched watched watching|agree agrees agreed agreed agreeing
lie lies lay lain lying|prefer prefers preferred preferred preferring|offer offers offered offered offering
visit visits visited visited visiting|decide decides decided decided deciding|panic panics panicked panicked panicking
see sees saw seen seeing|read reads read read reading|write writes wrote written writing|die dies died died dying
create creates created created creating|repeat repeats repeated repeated repeating|use uses used used using
focus focuses focused focused focusing|pass passes passed passed passing|add adds added added adding
begin begins began begun beginning|forget forgets forgot forgotten forgetting|deter deters deterred deterred deterring
open opens opened opened opening|unplug unplugs unplugged unplugged unplugging
""".replace("\n", "|").strip("|")


@pytest.mark.parametrize("row", FORMS.split("|"))
def test_forms_there_and_back(row):
    base, third, simple_past, perfect, ing = row.split()
    assert (third_person(base), past(base), participle(base), gerund(base)) == (
        third,
        simple_past,
        perfect,
        ing,
    )
    assert inflect(base, "VB") == base
    assert base_form(third, "VBZ", base) == base
    if base != "lie":  # where only a lemmatizer can tell
        assert base_form(simple_past, "VBD") == base
    assert base_form(simple_past, "VBD", base) == base


def test_base_and_past_forms_are_guessed_where_they_give_the_form_back():
    assert base_form("hoped", "VBD", "hop") == "hope"
    assert base_form("found", "VBD", "found") == "find"
    assert base_form("lay", "VBD", "lie") == "lie"
    assert base_form("laid", "VBD", "lay") == "lay"
    assert base_form("chanted", "VBD", "chante") == "chant"
    assert all(map(is_past, ["sang", "walked", "put", "was", "agreed", "Met"]))
    assert not any(map(is_past, ["sung", "need", "sings", "feed", "go", "begun"]))


def test_on_the_treebank(data_folder: Path):
    """Verb forms of the test set, which no rule here was written against, get their base."""
    wrong, count = [], 0
    with gzip.open(
        data_folder / "syntax" / "en_ewt-ud-test.conllu.gz", "rt", encoding="utf-8"
    ) as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if (
                len(row) > 5
                and row[3] == "VERB"
                and row[4] in ("VBZ", "VBD")
                and row[1].isalpha()
                and "Typo" not in row[5]
            ):
                count += 1
                if base_form(row[1], row[4]) != row[2].lower():
                    wrong.append((row[1], row[2]))
    assert count > 400
    assert len(wrong) <= count / 200, wrong


AN = """
apple easy ice old ugly umbrella uninteresting unimportant unintended unidentified uncle urban utter usher upper
hour hourly honest honorary heir X-ray MP NBC F-16 8 8th 80 85,000 11 11th 18 18,000 1850 11000 eighth eleven onerous
unanswered Indian Austrian Uzbek Emmy
"""
A = """
house red union unique uniform united universal unilateral unanimous European euro ewe one one-sided once useful used
usual utility utopian uranium Ugandan Ukrainian ubiquitous year 1 7 10 12 180 1,800 118 110 ninth US UN
NATO history hotel Uruguayan Utah
"""


@pytest.mark.parametrize(("words", "article"), [(AN, "an"), (A, "a")])
def test_words_spoken_with_a_vowel_or_a_consonant(words: str, article: str) -> None:
    assert [word for word in words.split() if indefinite_article(word) != article] == []


def tokens(text: str, *words: str) -> list[Token]:
    out, start = [], 0
    for word in words:
        start = text.index(word, start)
        end = start + len(word)
        out.append(
            Token(
                text=word,
                start=start,
                end=end,
                lemma=word,
                tag="NN",
                pos="NOUN",
                head=len(out),
                relation="ROOT",
            )
        )
        start = end
    return out


@pytest.mark.parametrize(
    ("text", "words", "new", "expected"),
    [
        ("An hour", ("An", "hour"), "minute", "A hour"),
        ("a  red car", ("a", "red"), "honest", "an  red car"),
        ("A RED CAR", ("A", "RED"), "old", "An RED CAR"),
        ("a house", ("a", "house"), "union", "a house"),
        ("the house", ("the", "house"), "hour", "the house"),
        ("a (red) car", ("a", "car"), "old car", "a (red) car"),
        ("house", ("house",), "hour", "house"),
    ],
)
def test_the_article_before_a_replaced_word(
    text: str, words: tuple[str, ...], new: str, expected: str
) -> None:
    assert (
        apply_edits(text, article_edits(text, tokens(text, *words), len(words) - 1, new))
        == expected
    )


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


# sentence, paraphrase ("" for null)
PARAPHRASES = """
The drug is safe.|The drug is not dangerous.
It was an easy task.|It was not a difficult task.
It isn't possible.|It is impossible.
The answer is also correct.|The answer is also not incorrect.
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
    words = [
        ("He", "PRP", "PRON", "nsubj"),
        ("an", "DT", "DET", "det"),
        ("accepted", "VBD", "VERB", "ROOT"),
    ]
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
    all_three = (
        "The plan wasn't rejected because the bridge isn't dangerous, and the road isn't closed."
    )
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
        text
        for text, _ in rewritten(
            AntonymQuadruple(), "The lake is deep and, as he says, the ice is thin.", 0.0
        )
    ]
    shared = [word for word in ("not shallow", "not thick") if all(word in text for text in texts)]
    assert len(shared) == 1, texts
