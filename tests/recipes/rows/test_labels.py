from __future__ import annotations

import gzip

import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes.rows.labels import read_labels

PAIRS = (
    "sentence1,sentence2,label\n"
    "Refunds are allowed.,You get your money back.,same\n"
    "Refunds are allowed.,Refunds are refused.,Opposite\n"
)
JUDGED = (
    "sentence1,sentence2,score,judgement\n"
    "open shop,The shop is open.,5,new is better\n"
    "open shop,The shop is closed.,0,new is better\n"
    "late train,The train is late.,2.5,same\n"
    "late train,The train was late.,2.5,same\n"
)


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "labels.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_pairs_become_rows_by_their_relation(file) -> None:
    labels = read_labels(file(PAIRS))
    assert labels.rows == (
        ("Refunds are allowed.", "You get your money back.", None, None, None),
        ("Refunds are allowed.", None, "Refunds are refused.", None, None),
    )
    assert labels.columns == ("label_same", "label_opposite")
    assert labels.describe() == "2 of labels.csv (1 same, 1 opposite)"


def test_judged_searches_become_an_order_and_equal_ones_nothing(file) -> None:
    labels = read_labels(file(JUDGED))
    assert labels.rows == (("open shop", None, None, "The shop is open.", "The shop is closed."),)
    assert labels.describe() == "1 of labels.csv (1 judged)"


def test_pairs_and_judgements_in_one_compressed_file(tmp_path) -> None:
    path = tmp_path / "both.jsonl.gz"
    rows = (
        '{"sentence1": "a", "sentence2": "b", "label": "same"}',
        '{"sentence1": "q", "sentence2": "good", "score": 5}',
        '{"sentence1": "q", "sentence2": "bad", "score": 0}',
    )
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert read_labels(path).rows == (("a", "b", None, None, None), ("q", None, None, "good", "bad"))


def test_a_label_given_twice_counts_once(file) -> None:
    assert len(read_labels(file(PAIRS + "You get your money back.,Refunds are allowed.,same\n")).rows) == 3, "turned"
    assert len(read_labels(file(PAIRS + "Refunds are allowed.,You get your money back.,same\n")).rows) == 2


def test_the_share_is_kept_up_to_twenty_of_each(file) -> None:
    labels = read_labels(file(PAIRS), 0.2)
    assert labels.training_rows(40) == {"label_same": 5, "label_opposite": 5}, "10 of 50 rows"
    assert labels.training_rows(100_000) == {"label_same": 20, "label_opposite": 20}
    assert labels.training_rows(1) == {"label_same": 1, "label_opposite": 1}
    many = "".join(f"text {i},other {i},same\n" for i in range(100))
    assert read_labels(file(PAIRS + many), 0.2).training_rows(40)["label_same"] == 10, "not all of them are used"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,label\na,b,other\n", "line 2: unknown label 'other'"),
        ("sentence1,sentence2,label\na,,same\n", "line 2: sentence2 is empty"),
        ("sentence1,text,label\na,b,same\n", "line 2: no column 'sentence2' among sentence1, text, label"),
        ("sentence1,sentence2\na,b\n", "line 2: no label"),
        ("sentence1,sentence2,label,score\na,b,,\n", "line 2: score '' is not a number"),
        ("", "no label to train on"),
        ("sentence1,sentence2,label\n", "no label to train on"),
        ("sentence1,sentence2,score\na,b,3\n", "no label to train on"),
        ("sentence1,sentence2,score\na,b,much\n", "line 2: score 'much' is not a number"),
        ("sentence1,sentence2,label\na,a,opposite\n", "line 2: a text is its own opposite"),
        (PAIRS + "Refunds are allowed.,Refunds are refused.,same\n", "line 4: .* 'same', but 'opposite' in line 3"),
        (PAIRS + "Refunds are refused.,Refunds are allowed.,same\n", "line 4: .* 'same', but 'opposite' in line 3"),
        (JUDGED + "open shop,The shop is closed.,5,\n", "line 6: .* 5.0, but 0.0 in line 3"),
        ("sentence1,sentence2,label\nDas Café,b,same\n".encode("latin-1"), "line 2: not valid UTF-8"),
    ],
)
def test_mistakes_name_the_line(file, content: str | bytes, message: str) -> None:
    with pytest.raises(OpencseError, match=message):
        read_labels(file(content))


@pytest.mark.parametrize("share", [0, -1, 0.6, float("nan")])
def test_a_share_out_of_range_is_refused(file, share: float) -> None:
    with pytest.raises(OpencseError, match=r"--label-share .*: out of range"):
        read_labels(file(PAIRS), share)


def test_a_search_with_more_hits_than_can_be_compared_is_refused(file) -> None:
    rows = "".join(f"a,b {i},{i}\n" for i in range(201))
    with pytest.raises(OpencseError, match=r"line 202.* more than 200"):
        read_labels(file("sentence1,sentence2,score\n" + rows))
