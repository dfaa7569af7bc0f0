"""The bundled transformations: form, counts, how many words each kind changes, and that nothing is from elsewhere."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from opencse.text.surface import match_error_rate
from tests.assets.known_texts import known_data_files, normalised, repeated_in

PROBE = files("opencse") / "assets" / "probe" / "transformations.tsv"
DEMO = files("opencse") / "assets" / "demo"
DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "probe.md"
# The rules of docs/data/probe.md, as the range of match error rates that each kind may have.
BOUNDS = {
    "paraphrase": (0.45, 1.0),
    "negation": (0.01, 0.3),
    "deletion": (0.01, 0.4),
    "insertion": (0.01, 0.4),
    "substitution": (0.01, 0.4),
    "random": (0.8, 1.0),
}
TEXTS = ["sentence", *BOUNDS]
NOT = re.compile(r"\bnot\b|\bcannot\b|n't\b", re.IGNORECASE)
NEGATIVE = re.compile(r"\b(not|never|no|nobody|nothing|none|neither|nowhere|cannot|hardly)\b|n't\b", re.IGNORECASE)


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


@pytest.fixture(scope="module")
def rows():
    text = PROBE.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    header, *cells = (line.split("\t") for line in text[:-1].split("\n"))
    assert header == ["id", "topic", *TEXTS]
    assert {len(row) for row in cells} == {len(header)}
    return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.fixture(scope="module")
def rates(rows):
    sentences = [row["sentence"] for row in rows]
    return {kind: match_error_rate(sentences, [row[kind] for row in rows]) for kind in BOUNDS}


def written(rows):
    """Every text once: the column `random` repeats sentences of other rows."""
    return [row[kind] for row in rows for kind in TEXTS if kind != "random"]


def test_counts_and_topics(rows):
    assert len(rows) >= 310
    assert len({row["id"] for row in rows}) == len(rows)
    topics = Counter(row["topic"] for row in rows)
    assert len(topics) >= 20
    assert min(topics.values()) >= 10
    numbers = Counter()
    for row in rows:
        numbers[row["topic"]] += 1
        assert row["id"] == f"{row['topic']}-{numbers[row['topic']]:02d}"


def test_every_cell_is_one_clean_plain_sentence(rows):
    for text in (row[kind] for row in rows for kind in TEXTS):
        assert text.isascii(), text
        assert text.isprintable(), text
        assert text == " ".join(text.split()), text
        assert re.fullmatch(r"[A-Z][^\"|*_#<>]*[.?!]", text), text
        assert ".." not in text, text


def test_sentences_are_varied(rows):
    sentences = [row["sentence"] for row in rows]
    assert [s for s in sentences if not 6 <= len(s.split()) <= 25] == []
    assert len({len(s.split()) for s in sentences}) >= 15
    assert 0.10 <= np.mean([bool(NEGATIVE.search(s)) for s in sentences]) <= 0.25
    assert 0.05 <= np.mean([s.endswith("?") for s in sentences]) <= 0.10
    assert np.mean([bool(re.search(r"\d", s)) for s in sentences]) >= 0.04
    assert Counter(s.split()[0] for s in sentences)["The"] / len(sentences) < 0.35


def test_nothing_is_repeated(rows):
    counts = Counter(map(normalised, written(rows)))
    assert [text for text, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("kind", BOUNDS)
def test_each_kind_changes_as_many_words_as_it_should(rows, rates, kind):
    low, high = BOUNDS[kind]
    outside = [(row["id"], rate) for row, rate in zip(rows, rates[kind], strict=True) if not low <= rate <= high]
    assert outside == []


def test_wording_misleads(rates):
    """The set does its work: the paraphrase is far from the words of the sentence, and the contradiction near."""
    median = {kind: float(np.median(rate)) for kind, rate in rates.items()}
    assert median["paraphrase"] > median["negation"] + 0.5
    assert (rates["paraphrase"] > rates["negation"]).all()
    assert max(median["negation"], median["deletion"], median["insertion"], median["substitution"]) < 0.3


def test_deletions_only_remove_and_insertions_only_add(rows):
    def within(short, long):
        rest = iter(long)
        return all(word in rest for word in short)

    for row in rows:
        assert within(words(row["deletion"]), words(row["sentence"])), row["id"]
        assert within(words(row["sentence"]), words(row["insertion"])), row["id"]
        change = len(row["substitution"].split()) - len(row["sentence"].split())
        assert abs(change) <= 2, row["id"]


def test_about_half_of_the_negations_only_add_or_remove_not(rows):
    changed = [len(NOT.findall(row["sentence"])) != len(NOT.findall(row["negation"])) for row in rows]
    assert 0.4 <= np.mean(changed) <= 0.6
    removed = [len(NEGATIVE.findall(row["sentence"])) > len(NEGATIVE.findall(row["negation"])) for row in rows]
    assert np.mean(removed) >= 0.10


def test_only_negations_change_whether_a_sentence_says_not(rows):
    """A stray or lost "not" would turn an insertion or a deletion into a contradiction."""
    for row in rows:
        for kind in ("deletion", "insertion"):
            assert len(NOT.findall(row[kind])) == len(NOT.findall(row["sentence"])), (row["id"], kind)


def test_random_is_the_sentence_of_a_row_on_another_topic_used_once(rows):
    owner = {row["sentence"]: row for row in rows}
    partners = [owner[row["random"]] for row in rows]
    assert len({partner["id"] for partner in partners}) == len(rows)
    for row, partner in zip(rows, partners, strict=True):
        assert partner["topic"] != row["topic"], row["id"]


def test_no_text_restates_the_demo_data(rows):
    from rapidfuzz import fuzz, process

    demo = (DEMO / "sentences.txt").read_text(encoding="utf-8").splitlines()
    for line in (DEMO / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        demo += line.split("\t")[:2]
    demo = [normalised(text) for text in demo]
    assert set(map(normalised, written(rows))) & set(demo) == set()
    close = {
        row["id"]: match[0]
        for row in rows
        if (
            match := process.extractOne(
                normalised(row["sentence"]), demo, scorer=fuzz.token_sort_ratio, score_cutoff=75
            )
        )
    }
    assert close == {}


def test_the_document_states_the_figures_of_the_file(rows, rates):
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"{len(rows)} sentences" in text
    assert f"{len({row['topic'] for row in rows})} topics" in text
    sentences = [row["sentence"] for row in rows]
    assert f"{sum(s.endswith('?') for s in sentences)} are questions" in text
    assert f"{sum(bool(re.search(r'[0-9]', s)) for s in sentences)} contain digits" in text
    assert f"{sum(bool(NEGATIVE.search(s)) for s in sentences)} are negative" in text
    table = re.findall(r"^\| `(\w+)` \|.*\| (\d\.\d\d) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.MULTILINE)
    stated = {kind: tuple(map(float, figures)) for kind, *figures in table}
    assert stated == {
        kind: tuple(round(float(f(rate)), 2) for f in (np.median, np.min, np.max)) for kind, rate in rates.items()
    }


def test_no_text_occurs_in_a_known_data_set(rows):
    for path in known_data_files():
        assert repeated_in(path, written(rows)) == set(), path.name
