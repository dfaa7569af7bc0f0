"""The bundled demo text: counts, form, and that nothing is repeated, shared or taken from a known evaluation set."""

import gzip
import os
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

DEMO = files("opencse") / "assets" / "demo"
KINDS = {
    "paraphrase": 58,
    "negation": 33,
    "antonym": 20,
    "role_swap": 15,
    "number": 10,
    "entity": 10,
    "edit": 28,
    "related": 33,
    "unrelated": 23,
    "double_negation": 10,
}
# The scoring rule of docs/data/demo.md, as the range that each kind may use.
RANGES = {
    "paraphrase": (3.8, 5.0),
    "negation": (1.5, 2.0),
    "antonym": (1.5, 2.0),
    "role_swap": (1.5, 2.5),
    "number": (2.5, 5.0),
    "entity": (1.8, 5.0),
    "edit": (4.4, 5.0),
    "related": (1.0, 3.6),
    "unrelated": (0.0, 0.5),
    "double_negation": (4.4, 5.0),
}
NEGATION = re.compile(r"\b(not|never|no|nobody|nothing|none|neither|nowhere|cannot)\b|n't\b", re.IGNORECASE)


def lines(name):
    text = (DEMO / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


def normalised(sentence):
    return " ".join(re.findall(r"[a-z0-9]+", sentence.lower()))


@pytest.fixture(scope="module")
def sentences():
    return lines("sentences.txt")


@pytest.fixture(scope="module")
def pairs():
    header, *rows = (line.split("\t") for line in lines("pairs.tsv"))
    assert header == ["sentence1", "sentence2", "score", "kind"]
    assert {len(row) for row in rows} == {4}
    return [(first, second, float(score), kind) for first, second, score, kind in rows]


@pytest.fixture(scope="module")
def pair_sentences(pairs):
    return [sentence for pair in pairs for sentence in pair[:2]]


def test_counts(sentences, pairs):
    assert 900 <= len(sentences) <= 1200
    assert Counter(kind for *_, kind in pairs) == KINDS
    assert sum(KINDS.values()) == 240


def test_the_document_states_the_counts_of_the_files(sentences):
    document = Path(__file__).parents[2] / "docs" / "data" / "demo.md"
    text = document.read_text(encoding="utf-8")
    stated = {kind: int(count) for kind, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)}
    assert stated == KINDS
    assert f"{len(sentences):,} sentences" in text


def test_every_line_is_one_clean_plain_sentence(sentences, pair_sentences):
    for sentence in [*sentences, *pair_sentences]:
        assert sentence.isascii(), sentence
        assert sentence.isprintable(), sentence
        assert sentence == " ".join(sentence.split()), sentence
        assert re.fullmatch(r"[A-Z][^\"|*_#<>]*[.?!]", sentence), sentence


def test_training_sentences_are_of_moderate_length(sentences):
    assert [s for s in sentences if not 5 <= len(s.split()) <= 28] == []


def test_training_sentences_are_varied(sentences):
    assert 0.10 <= sum(bool(NEGATION.search(s)) for s in sentences) / len(sentences) <= 0.16
    assert 0.04 <= sum(s.endswith("?") for s in sentences) / len(sentences) <= 0.07
    openings = Counter(s.split()[0] for s in sentences)
    assert openings["The"] / len(sentences) < 0.40


def test_nothing_is_repeated(sentences, pair_sentences):
    counts = Counter(map(normalised, [*sentences, *pair_sentences]))
    assert [sentence for sentence, count in counts.items() if count > 1] == []


def test_no_pair_restates_a_training_sentence(sentences, pair_sentences):
    from rapidfuzz import fuzz, process

    choices = [normalised(s) for s in sentences]
    close = {
        s: match[0]
        for s in pair_sentences
        if (match := process.extractOne(normalised(s), choices, scorer=fuzz.token_sort_ratio, score_cutoff=75))
    }
    assert close == {}


def test_scores_follow_the_rule(pairs):
    for first, second, score, kind in pairs:
        low, high = RANGES[kind]
        assert 0 <= low <= score <= high <= 5, (first, second, score, kind)


def test_wording_misleads(pairs):
    """The set does its work: contradictions share more words than paraphrases do."""

    def overlap(kind):
        shares = []
        for first, second, _, k in pairs:
            if k == kind:
                a, b = set(normalised(first).split()), set(normalised(second).split())
                shares.append(len(a & b) / len(a | b))
        return sum(shares) / len(shares)

    assert overlap("paraphrase") < 0.2
    assert min(overlap("negation"), overlap("antonym"), overlap("role_swap")) > 0.5


def evaluation_folder():
    named = os.environ.get("OPENCSE_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


def test_no_line_occurs_in_a_known_evaluation_set(sentences, pair_sentences):
    found = sorted((evaluation_folder() / "eval").glob("*/*.tsv.gz"))
    if not found:
        pytest.skip("no evaluation data: set OPENCSE_DATA to the folder that holds eval/")
    ours = {normalised(s) for s in [*sentences, *pair_sentences]}
    for path in found:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
            cells = {normalised(cell) for line in stream for cell in line.rstrip("\n").split("\t")}
        assert ours & cells == set(), path.name
