"""What holds for all bundled texts: clean, written once, and not from elsewhere."""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from opencse.evaluation.written_sets import load_development
from opencse.foundation.tables import read_table
from opencse.text.surface import lexical_overlap, match_error_rate

ASSETS = files("opencse") / "assets"
COLUMNS = {
    "demo/pairs.tsv": ["sentence1", "sentence2"],
    # The column `random` repeats sentences of other rows.
    "probe/transformations.tsv": [
        *("sentence", "paraphrase", "negation", "deletion", "insertion", "substitution")
    ],
    "guard/questions.tsv": ["question"],
    "guard/answers.tsv": ["question", "passage"],
    "guard/topics.tsv": ["text"],
    "guard/long.tsv": ["summary", "text"],
}


def texts() -> dict[str, list[str]]:
    """The texts of each set."""
    found: dict[str, list[str]] = {
        "demo": (ASSETS / "demo" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    }
    for name, columns in COLUMNS.items():
        rows = [row for _, row in read_table(ASSETS / name)]
        found.setdefault(name.split("/")[0], []).extend(
            row[column] for row in rows for column in columns if row[column]
        )
    triplets = [triplet for each in load_development() for triplet in each.triplets]
    return found | {
        "development": [text for t in triplets for text in (t.anchor, t.positive, t.negative)]
    }


TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_clean(name: str) -> None:
    unclean = re.compile(r"[“”|*_#<>]|\.\.")
    for text in TEXTS[name]:
        assert text.isprintable(), text
        assert text == " ".join(text.split()), text
        assert not unclean.search(text), text
        if name in ("demo", "probe"):
            assert text.isascii(), text
            assert re.fullmatch(r"[A-Z][^\"]*[.?!]", text), text


def test_no_text_stands_twice() -> None:
    counts = Counter(normalised(text) for each in TEXTS.values() for text in each)
    assert [text for text, count in counts.items() if count > 1] == []


def test_no_text_occurs_in_a_known_data_set() -> None:
    ours = [text for each in TEXTS.values() for text in each]
    for path in known_data_files():
        assert repeated_in(path, ours) == set(), path.name


def normalised(text):
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def known_data_files():
    """Every file of data sets and corpora on this machine; skips the test where there is none."""
    named = os.environ.get("OPENCSE_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    found = sorted(folder.glob("eval/*/*.tsv.gz")) + sorted(folder.glob("corpus/*head*.txt.gz"))
    if not found:
        pytest.skip("no real data: set OPENCSE_DATA to the folder that holds eval/")
    return found


def repeated_in(path, texts):
    """Those of our texts that are a cell of this file, but for case and punctuation."""
    ours = {normalised(text) for text in texts}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        cells = {normalised(cell) for line in stream for cell in line.rstrip("\n").split("\t")}
    return ours & cells


DEMO = files("opencse") / "assets" / "demo"
# How many pairs of each kind, and the range of scores that docs/data/demo.md allows it.
KINDS = {
    "paraphrase": (58, 3.8, 5.0),
    "negation": (33, 1.5, 2.0),
    "antonym": (20, 1.5, 2.0),
    "role_swap": (15, 1.5, 2.5),
    "number": (10, 2.5, 5.0),
    "entity": (10, 1.8, 5.0),
    "edit": (28, 4.4, 5.0),
    "related": (33, 1.0, 3.6),
    "unrelated": (23, 0.0, 0.5),
    "double_negation": (10, 4.4, 5.0),
}


def lines(name):
    text = (DEMO / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.fixture(scope="module")
def sentences():
    return lines("sentences.txt")


@pytest.fixture(scope="module")
def pairs():
    header, *rows = (line.split("\t") for line in lines("pairs.tsv"))
    assert header == ["sentence1", "sentence2", "score", "kind"]
    assert {len(row) for row in rows} == {4}
    return [(first, second, float(score), kind) for first, second, score, kind in rows]


def test_counts_and_scores_of_the_demo_are_those_of_its_page(sentences, pairs):
    assert 900 <= len(sentences) <= 1200
    assert Counter(kind for *_, kind in pairs) == {
        kind: count for kind, (count, *_) in KINDS.items()
    }
    assert len(pairs) == 240
    document = Path(__file__).parents[2] / "docs" / "data" / "demo.md"
    text = document.read_text(encoding="utf-8")
    stated = {
        kind: int(count)
        for kind, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)
    }
    assert stated == {kind: count for kind, (count, *_) in KINDS.items()}
    assert f"{len(sentences):,} sentences" in text
    for first, second, score, kind in pairs:
        _, low, high = KINDS[kind]
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


DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "development-sets.md"
SETS = {each.name: each.triplets for each in load_development("")}


def words(text):
    return re.sub(r"[^\w' ]", " ", text)


def rates(measure, triplets, side):
    return measure([words(t.anchor) for t in triplets], [words(getattr(t, side)) for t in triplets])


def of_grade(grade):
    return [t for t in SETS["meaning"] if t.groups["grade"] == grade]


def test_counts_and_balance():
    assert {name: len(triplets) for name, triplets in SETS.items()} == {
        "meaning": 300,
        "search": 200,
        "roles": 200,
    }
    assert Counter(t.groups["grade"] for t in SETS["meaning"]) == {
        "near": 100,
        "middle": 100,
        "far": 100,
    }
    kinds = Counter((t.groups["grade"], t.groups["kind"]) for t in SETS["meaning"])
    assert len({kind for _, kind in kinds}) == 10
    assert all(kinds[grade, kind] == kinds["near", kind] >= 6 for grade, kind in kinds)
    assert set(Counter(t.groups["domain"] for t in SETS["search"]).values()) == {40}
    assert len({t.groups["kind"] for t in SETS["roles"]}) == 8


def test_exchanged_roles_use_the_words_of_the_sentence():
    def stems(text):
        return Counter(word[:5] for word in re.findall(r"\w+", text.lower()))

    for t in SETS["roles"]:
        a, b = stems(t.anchor), stems(t.negative)
        assert sum(((a - b) + (b - a)).values()) <= 4, t.id
        assert t.anchor.lower() != t.negative.lower()


def test_the_document_states_the_figures_of_the_files():
    text = DOCUMENT.read_text(encoding="utf-8")
    parts = {f"`meaning`, {grade}": of_grade(grade) for grade in ("near", "middle", "far")}
    for name, triplets in (
        parts | {f"`{name}`": SETS[name] for name in ("search", "roles")}
    ).items():
        medians = [
            f"{np.median(rates(measure, triplets, side)):.2f}"
            for side in ("positive", "negative")
            for measure in (lexical_overlap, match_error_rate)
        ]
        assert f"| {' | '.join([name, str(len(triplets)), *medians])} |" in text


GUARD = files("opencse") / "assets" / "guard"
ROWS = {
    name: [row for _, row in read_table(GUARD / f"{name}.tsv")]
    for name in ("questions", "answers", "topics", "long")
}
SUBJECTS = len({row["subject"] for row in ROWS["answers"]})


def test_counts_of_the_guard_are_those_of_its_page():
    groups = Counter(row["group"] for row in ROWS["questions"])
    assert len(groups) >= 150
    assert set(groups.values()) == {2, 3}
    answers = ROWS["answers"]
    assert sum(bool(row["question"]) for row in answers) >= 420
    assert min(Counter(row["subject"] for row in answers).values()) >= 3
    assert sum(not row["question"] for row in answers) >= 20
    assert set(Counter(row["topic"] for row in ROWS["topics"]).values()) == {40}
    assert len({row["topic"] for row in ROWS["topics"]}) >= 12
    assert len(ROWS["long"]) >= 44
    assert all(80 <= len(row["text"].split()) <= 160 for row in ROWS["long"])
    assert sum(path.stat().st_size for path in GUARD.iterdir()) < 200_000
    text = DOCUMENT.read_text(encoding="utf-8")
    questions, answers = ROWS["questions"], ROWS["answers"]
    asked = sum(bool(row["question"]) for row in answers)
    assert (
        f"| {len(questions)} | {len(questions)} questions | {len({row['group'] for row in questions})} "
        in text
    )
    assert (
        f"| {asked} | {len(answers)} passages | three or four passages on each of {SUBJECTS} subjects"
        in text
    )
    assert (
        f"| {len(ROWS['topics'])} | {len(ROWS['topics'])} texts | {len({r['topic'] for r in ROWS['topics']})} "
        in text
    )
    assert f"| {len(ROWS['long'])} texts | pairs of texts" in text


PROBE = files("opencse") / "assets" / "probe" / "transformations.tsv"
PROBE_PAGE = Path(__file__).parents[2] / "docs" / "data" / "probe.md"
TRANSFORMATIONS = ["paraphrase", "negation", "deletion", "insertion", "substitution", "random"]
NOT = re.compile(r"\bnot\b|\bcannot\b|n't\b", re.IGNORECASE)
NEGATIVE = re.compile(
    r"\b(not|never|no|nobody|nothing|none|neither|nowhere|cannot|hardly)\b|n't\b", re.IGNORECASE
)


def content_words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


@pytest.fixture(scope="module")
def rows():
    text = PROBE.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    header, *cells = (line.split("\t") for line in text[:-1].split("\n"))
    assert header == ["id", "topic", "sentence", *TRANSFORMATIONS]
    assert {len(row) for row in cells} == {len(header)}
    return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.fixture(scope="module")
def error_rates(rows):
    sentences = [row["sentence"] for row in rows]
    return {
        kind: match_error_rate(sentences, [row[kind] for row in rows]) for kind in TRANSFORMATIONS
    }


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


def test_deletions_only_remove_and_insertions_only_add(rows):
    def within(short, long):
        rest = iter(long)
        return all(word in rest for word in short)

    for row in rows:
        assert within(content_words(row["deletion"]), content_words(row["sentence"])), row["id"]
        assert within(content_words(row["sentence"]), content_words(row["insertion"])), row["id"]
        change = len(row["substitution"].split()) - len(row["sentence"].split())
        assert abs(change) <= 2, row["id"]


def test_only_negations_change_whether_a_sentence_says_not(rows):
    """A stray or lost "not" would turn an insertion or a deletion into a contradiction."""
    for row in rows:
        for kind in ("deletion", "insertion"):
            assert len(NOT.findall(row[kind])) == len(NOT.findall(row["sentence"])), (
                row["id"],
                kind,
            )


def test_random_is_the_sentence_of_a_row_on_another_topic_used_once(rows):
    owner = {row["sentence"]: row for row in rows}
    partners = [owner[row["random"]] for row in rows]
    assert len({partner["id"] for partner in partners}) == len(rows)
    for row, partner in zip(rows, partners, strict=True):
        assert partner["topic"] != row["topic"], row["id"]


def test_the_document_states_the_figures_of_the_file(rows, error_rates):
    text = PROBE_PAGE.read_text(encoding="utf-8")
    assert f"{len(rows)} sentences" in text
    assert f"{len({row['topic'] for row in rows})} topics" in text
    sentences = [row["sentence"] for row in rows]
    assert f"{sum(s.endswith('?') for s in sentences)} are questions" in text
    assert f"{sum(bool(re.search(r'[0-9]', s)) for s in sentences)} contain digits" in text
    assert f"{sum(bool(NEGATIVE.search(s)) for s in sentences)} are negative" in text
    table = re.findall(
        r"^\| `(\w+)` \|.*\| (\d\.\d\d) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.MULTILINE
    )
    stated = {kind: tuple(map(float, figures)) for kind, *figures in table}
    assert stated == {
        kind: tuple(round(float(f(rate)), 2) for f in (np.median, np.min, np.max))
        for kind, rate in error_rates.items()
    }
