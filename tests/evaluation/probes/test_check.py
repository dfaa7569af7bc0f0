"""`check` on texts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from opencse.commands.check import check, render_check
from opencse.commands.reports.page import write_page
from opencse.evaluation.check.contradictions import DENIED, SentenceRewriter
from opencse.evaluation.check.own_texts import check_texts
from opencse.foundation.errors import OpencseError
from opencse.text.documents import DocumentPassage, likely_language
from opencse.text.languages import AUTO, choose_language

OPPOSED = (
    "not",
    "n't",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
    "dangerous",
    "closed",
    "cold",
    "false",
    "unsafe",
)
TEXTS = [
    "The old bridge is safe.",
    "The shop near the station is open.",
    "The soup is hot.",
    "The answer is true.",
    "In 1990, the king left the city.",
    "The window is closed.",
]


def by_words(texts) -> np.ndarray:
    """A model that goes by wording: counts of letter pairs."""
    out = np.zeros((len(texts), 512))
    for row, text in enumerate(texts):
        for a, b in zip(text.lower(), text.lower()[1:], strict=False):
            out[row, (ord(a) * 31 + ord(b)) % 512] += 1
    return out


def by_meaning(texts) -> np.ndarray:
    """A model that sees little but the number of words that turn a sentence round."""
    out = 1e-3 * by_words(texts)
    for row, text in enumerate(texts):
        turned = sum(
            word.strip(".,") in OPPOSED or word.endswith("n't") for word in text.lower().split()
        )
        out[row, turned % 2] += 10
    return out


def checked(encode, passages, **options):
    language = choose_language(AUTO, likely_language(passage.text for passage in passages))
    return check_texts(encode, passages, SentenceRewriter(0, language), **options)


def single(texts):
    return [DocumentPassage("mine.txt", (text,)) for text in texts]


@pytest.fixture(scope="module")
def found():
    return replace(checked(by_words, single(TEXTS)), model="words")


def test_a_model_that_goes_by_wording_is_found_out(found) -> None:
    assert found.language == "en"
    assert found.texts == len(TEXTS)
    assert found.kinds["negation"].rows >= 4
    denied = found.rewordings["negated opposite"]
    assert denied.value > 0.5
    assert found.examples[0].contradiction_first
    assert found.examples[0].ranks[0] < found.examples[0].ranks[1]
    assert found.headline().startswith(
        f"words: can't say, too few sentences ({found.contradiction_first.rows};"
    )
    meaning = checked(by_meaning, single(TEXTS))
    assert meaning.rewordings["negated opposite"].value < denied.value
    enough = replace(found, contradiction_first=replace(found.contradiction_first, rows=20))
    assert "words ranks the contradiction" in enough.headline()


def test_passages(found) -> None:
    assert found.contradiction_first_in_passages is None
    whole = checked(
        by_words,
        [DocumentPassage("a.md", tuple(TEXTS[:3])), DocumentPassage("b.md", tuple(TEXTS[3:]))],
    )
    assert whole.contradiction_first_in_passages is not None
    assert whole.contradiction_first_in_passages.rows == whole.contradiction_first.rows > 0


def test_another_language_is_named() -> None:
    texts = [
        "La gare est fermée et les trains ne sont pas là.",
        "Les 12 salles sont dans la ville et elles sont propres.",
        TEXTS[0],
    ]
    found = checked(by_words, single(texts))
    assert found.language == "fr"
    assert any(
        "The texts look French, for which there are no rules: only numbers" in note
        for note in found.notes
    )
    assert not found.rewordings


QUESTIONS = [
    "How do I mute a chat?",
    "How do I archive a chat?",
    "Are there flights to Rome before noon?",
    "Which rooms hold at least forty guests?",
    "How do I convert euros into dollars?",
]


def test_questions_are_turned_round_for_a_cache() -> None:
    found = checked(by_words, single(QUESTIONS))
    assert {"action", "other action", "order", "limit", "arguments"} <= set(found.kinds)
    assert found.untrained.rows == 1  # to archive is no action of the training rows
    assert [rate.accepted for rate in found.cache] == [0.8, 0.9, 0.95]
    assert all(rate.score == "cosine" for rate in found.cache)
    strict, *_, loose = found.cache
    assert strict.threshold >= loose.threshold
    assert strict.false_hits.value <= loose.false_hits.value


def test_a_score_with_agreement_is_reported_next_to_the_cosine() -> None:
    def knows(first, second) -> np.ndarray:
        opposed = ("unmute", "unarchive", "after", "at most", "dollars into")
        return np.array([-1.0 if any(word in text for word in opposed) else 1.0 for text in second])

    found = checked(by_words, single(QUESTIONS), cache_score=knows)
    assert len(found.cache) == 6
    for rate in found.cache[3:]:
        assert rate.score == "cosine and agreement"
        assert rate.false_hits.value == 0
        assert rate.untrained.value == 0
    console = Console(record=True, width=100, file=StringIO())
    console.print(found)
    assert "cosine and agreement" in console.export_text()


def test_two_models_get_the_same_sentences() -> None:
    one, other = (checked(encode, single(TEXTS), sentences=4) for encode in (by_words, by_meaning))
    assert one.sentences == other.sentences
    assert {each.sentence for each in one.examples} == {each.sentence for each in other.examples}


def test_markup_is_no_test_case() -> None:
    odd = ("The path src/main.py is safe.", "x is safe = y.")
    with pytest.raises(OpencseError, match="none of the 0 sentences"):
        checked(by_words, single(odd))


def test_the_page_holds_what_was_found_and_nothing_that_could_run(found, tmp_path) -> None:
    evil = replace(found.examples[0], sentence="<script>alert(1)</script>", source="a\u202eb")
    page = render_check(replace(found, examples=(evil,)))
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "\u202e" not in page
    assert (
        write_page(tmp_path, "check", render_check(found), asdict(found))
        .read_text()
        .count("contradiction")
        > 3
    )
    written = json.loads((tmp_path / "check.json").read_text())
    assert written["contradiction_first"]["rows"] == found.contradiction_first.rows


def test_the_result_shows_itself(found) -> None:
    assert len(repr(found)) < 300
    console = Console(record=True, width=100, file=StringIO())
    console.print(found)
    assert "contradiction first" in console.export_text()


def test_a_loaded_model_and_a_list(tiny_model) -> None:
    result = check(tiny_model, TEXTS, minutes=0.2)
    assert result.contradiction_first.rows > 0


def test_sentences_that_a_rewriting_does_not_contradict_or_reword_are_left_out() -> None:
    sentences = (
        "The lock is safe.",
        "The lock is sold only in shops.",
        "The lock is cheap because it is old.",
        "Call close() when the lock is open.",
        "The boy sees the dog.",
        "The lock allows you to open the door.",
        "Some of the windows are open.",
        "The door is open.",
        "Ask us if the door is open.",
        "The plan was approved in 1986.",
        "The plan was approved on 4 May 1986.",
        "The plan was approved.",
    )
    (chunk,) = SentenceRewriter(seed=1)([DocumentPassage("a.txt", sentences)])
    found = {each.text: set(each.contradictions) for each in chunk}
    safe, only, because, code, roles, allowed, some, plain, condition, *dated = sentences
    assert "negation" in found[safe]
    assert "negation" not in found[only] | found[because] | found[some]
    assert code not in found  # code, not prose
    assert found[roles] == {"negation", DENIED}  # exchanged roles may be true as well
    forbidden = next(
        each.contradictions.get("opposite", "forbids") for each in chunk if each.text == allowed
    )
    assert "forbids" in forbidden
    assert {"negation", "opposite"} <= found[plain]
    assert "opposite" not in found[condition]
    reworded = {each.text: "negated opposite" in each.rewordings for each in chunk}
    assert [reworded[sentence] for sentence in dated] == [False, False, True]
