"""Triplets: reading, validation, and accuracy by group."""

import numpy as np
import pytest

from opencse.evaluation import TripletTask, development_set, evaluate_tasks, read_triplets
from opencse.foundation.errors import OpencseError

TABLE = """id\tkind\tanchor\tpositive\tnegative
a\tverb\tone\tuno\tnot one
b\tverb\ttwo\tdue\tnot two
c\tnoun\tthree\ttre\tnot three
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text(TABLE)
    return file


def encode(angles):
    return lambda texts: np.array([[np.cos(angles[text]), np.sin(angles[text])] for text in texts])


ANGLES = {"one": 0, "uno": 0.1, "not one": 0.5, "two": 0, "due": 0.5, "not two": 0.1}
ANGLES |= {"three": 0, "tre": 0.3, "not three": 0.3}


def scored(path):
    return evaluate_tasks(encode(ANGLES), [TripletTask(data=read_triplets(path))])["mine"]


def test_accuracy_by_group_with_a_tie_as_wrong_and_a_hash_of_the_rows(path):
    result = scored(path)
    assert result.metrics == pytest.approx({"accuracy": 100 / 3, "kind: verb": 50, "kind: noun": 0})
    assert (result.main, result.rows) == ("accuracy", 3)
    assert result.details["rows"] == {"kind: verb": 2, "kind: noun": 1}
    path.write_text(TABLE.replace("c\tnoun", "c\tverb"))
    assert scored(path).data_sha256 != result.data_sha256


def test_rows_without_an_id_are_named_by_their_line(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("anchor,positive,negative\none,uno,not one\n")
    (triplet,) = read_triplets(file).triplets
    assert triplet.id == "line 2"
    assert triplet.groups == {}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("anchor", "query", "line 2: no anchor among"),
        ("uno", " ", "line 2: no positive"),
        ("verb\ttwo", "\ttwo", "line 3: no kind"),
        ("b\t", "a\t", "line 3: the id 'a' occurs twice"),
        ("not three", "tre", "line 4: two of the three texts are equal"),
        (TABLE.partition("\n")[2], "", "holds no row"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(path, old, new, problem):
    path.write_text(TABLE.replace(old, new))
    with pytest.raises(OpencseError, match=problem):
        read_triplets(path)


def test_an_unknown_development_set_is_an_error():
    with pytest.raises(OpencseError, match="no development set 'other'"):
        development_set("other")
