from __future__ import annotations

import gzip
import json
import math

import pytest

from opencse.evaluation import ScoredPairs, read_pairs
from opencse.foundation.errors import OpencseError

HEADER = "sentence1\tsentence2\tscore\n"


def write(path, text: str | bytes):
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


NAMES = ("sentence1", "sentence2", "score", "subset")


def columns(pairs: ScoredPairs) -> tuple[list[str], list[str], list[float]]:
    return list(pairs.sentence1), list(pairs.sentence2), list(pairs.scores)


def test_columns_have_any_order_and_subsets_are_kept(tmp_path):
    rows = [dict(zip(NAMES, values, strict=True)) for values in (("a", "b", 1, "u"), ("c", "d", 2.5, "v"))]
    pairs = read_pairs(write(tmp_path / "p.jsonl.gz", "\n".join(map(json.dumps, rows))))
    assert columns(pairs) == (["a", "c"], ["b", "d"], [1.0, 2.5])
    assert (pairs.name, pairs.subsets) == ("p", ["u", "v"])
    pairs = read_pairs(write(tmp_path / "q.csv", 'score,sentence1,extra,sentence2\n3,"a, ""b""\nc",,d\n4,e,,f\n'))
    assert columns(pairs) == (['a, "b"\nc', "e"], ["d", "f"], [3.0, 4.0])
    assert (pairs.name, pairs.subsets) == ("q", None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.tsv", HEADER + "a\tb\t1\nc\td\thigh\n", "line 3: score 'high'"),
        ("p.tsv", HEADER + "a\tb\tnan\n", "line 2: score 'nan'"),
        ("p.csv", "sentence1,sentence2,score\nThe lamp.,It is lit.,5\nThe lamp.,,4\n", "line 3: no sentence2"),
        ("p.tsv", "first\tsentence2\tscore\na\tb\t1\n", "line 2: no sentence1 among first, sentence2, score"),
        ("p.tsv", HEADER, "holds no row"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": "b", "score": true}\n', "line 1: score True"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, name, text, message):
    path = write(tmp_path / name, text)
    with pytest.raises(OpencseError, match=message) as error:
        read_pairs(path)
    assert str(path) in str(error.value)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("first", "second", "scores", "message"),
    [
        (["a", "b"], ["c"], [1.0, 2.0], "unequal"),
        ([], [], [], "no sentence pair"),
        (["a", "b"], ["c", "d"], [1.0, math.nan], "pair 1"),
    ],
)
def test_impossible_sets(first, second, scores, message):
    with pytest.raises(OpencseError, match=message):
        ScoredPairs(name="x", sentence1=first, sentence2=second, scores=scores)


def test_hash_sees_text_score_and_order():
    def digest(a, b, s):
        return ScoredPairs(name="x", sentence1=a, sentence2=b, scores=s).sha256

    base = digest(["a", "b"], ["c", "d"], [1, 2])
    assert base == digest(["a", "b"], ["c", "d"], [1.0, 2.0])
    others = {
        digest(["b", "a"], ["d", "c"], [2, 1]),
        digest(["a", "b"], ["c", "d"], [1, 3]),
        digest(["c", "b"], ["a", "d"], [1, 2]),
        digest(["ac", "b"], ["", "d"], [1, 2]),
    }
    assert len(others | {base}) == 5
