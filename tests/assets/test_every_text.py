"""What holds for all bundled texts: clean, written once, and not from elsewhere."""

import re
from collections import Counter
from importlib.resources import files

import pytest

from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.foundation.tables import read_table
from tests.assets.known_texts import known_data_files, normalised, repeated_in

ASSETS = files("opencse") / "assets"
COLUMNS = {
    "demo/pairs.tsv": ["sentence1", "sentence2"],
    # The column `random` repeats sentences of other rows.
    "probe/transformations.tsv": [
        *("sentence", "paraphrase", "negation", "deletion", "insertion", "substitution"),
    ],
    "guard/questions.tsv": ["question"],
    "guard/answers.tsv": ["question", "passage"],
    "guard/topics.tsv": ["text"],
    "guard/long.tsv": ["summary", "text"],
}


def texts() -> dict[str, list[str]]:
    """The texts of each set."""
    found: dict[str, list[str]] = {"demo": (ASSETS / "demo" / "sentences.txt").read_text(encoding="utf-8").splitlines()}
    for name, columns in COLUMNS.items():
        rows = [row for _, row in read_table(ASSETS / name)]
        found.setdefault(name.split("/")[0], []).extend(
            row[column] for row in rows for column in columns if row[column]
        )
    triplets = [each for name in DEVELOPMENT_SETS for each in development_set(name).triplets]
    return found | {"development": [text for t in triplets for text in (t.anchor, t.positive, t.negative)]}


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
