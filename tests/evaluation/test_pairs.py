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


def columns(pairs: ScoredPairs) -> tuple[list[str], list[str], list[float]]:
    return list(pairs.sentence1), list(pairs.sentence2), list(pairs.scores)


def test_tsv_knows_no_quoting_and_one_kind_of_line_end(tmp_path):
    text = HEADER + '"a dog\tb" " c\t1.5\nx\u2028y\x0c\x85\tz\x12\t-2e0\n'
    for name in ("p.tsv", "p.tsv.gz"):
        pairs = read_pairs(write(tmp_path / name, text))
        assert columns(pairs) == (['"a dog', "x\u2028y\x0c\x85"], ['b" " c', "z\x12"], [1.5, -2.0])
        assert pairs.name == "p"


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    path = write(
        tmp_path / "p.tsv", b"\xef\xbb\xbf" + HEADER.replace("\n", "\r\n").encode() + b"a\tb\t1\r\n\r\nc\td\t2\r\n"
    )
    assert columns(read_pairs(path)) == (["a", "c"], ["b", "d"], [1.0, 2.0])


def test_csv_is_quoted(tmp_path):
    path = write(tmp_path / "p.csv", 'label,text1,extra,text2\n3,"a, ""b""\nc",,d\n4,e,,f\n')
    assert columns(read_pairs(path)) == (['a, "b"\nc', "e"], ["d", "f"], [3.0, 4.0])


def test_jsonl_and_subsets(tmp_path):
    rows = [{"s1": "a", "s2": "b", "gold": 1, "subset": "u"}, {"s1": "c", "s2": "d", "gold": 2.5, "subset": "v"}]
    path = write(tmp_path / "p.jsonl.gz", "\n".join(map(json.dumps, rows)))
    pairs = read_pairs(path)
    assert columns(pairs) == (["a", "c"], ["b", "d"], [1.0, 2.5])
    assert pairs.subsets == ["u", "v"]
    assert pairs.name == "p"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.tsv", HEADER + "a\tb\t1\nc\td\thigh\n", "line 3: score 'high'"),
        ("p.tsv", HEADER + "a\tb\tnan\n", "line 2: score 'nan'"),
        ("p.tsv", HEADER + "a\tb\tinf\n", "line 2: score 'inf'"),
        ("p.tsv", HEADER + "a\tb\t\n", "line 2: no score among"),
        (
            "p.csv",
            "sentence1,sentence2,score\nThe lamp is on.,The lamp is lit.,5\nThe lamp is on.,,4\n",
            "line 3: no sentence2",
        ),
        ("p.tsv", HEADER + "a\tb\n", r"line 2: 2 cells.*3 columns"),
        ("p.tsv", "first\tsentence2\tscore\na\tb\t1\n", "line 2: no sentence1 among first, sentence2, score"),
        ("p.tsv", HEADER, "holds no row"),
        ("p.tsv", "", "holds no row"),
        ("p.csv", 'sentence1,sentence2,score\n"a"b,c,1\n', "line 2"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sentence1": ', "line 2: not JSON"),
        ("p.jsonl", "[1]\n", "line 1: not a JSON object"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": 3, "score": 1}\n', "line 1: sentence2 is 3"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": "b", "score": true}\n', "line 1: score True"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": null, "score": 1}\n', "line 1: no sentence2"),
        ("p.xlsx", "", "cannot tell the format"),
        ("p.tsv", HEADER.encode() + b"a\tb\t1\nc\xff\td\t2\n", "line 3: not valid UTF-8"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, name, text, message):
    path = write(tmp_path / name, text)
    with pytest.raises(OpencseError, match=message) as error:
        read_pairs(path)
    assert str(path) in str(error.value)
    assert error.value.remedy


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(OpencseError, match="no such file"):
        read_pairs(tmp_path / "absent.tsv")
    whole = gzip.compress((HEADER + "a\tb\t1\n" * 5000).encode(), mtime=0)
    (tmp_path / "cut.tsv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(OpencseError, match="after line"):
        read_pairs(tmp_path / "cut.tsv.gz")
    (tmp_path / "plain.tsv.gz").write_text(HEADER)
    with pytest.raises(OpencseError, match="gzip"):
        read_pairs(tmp_path / "plain.tsv.gz")


def test_impossible_sets():
    with pytest.raises(OpencseError, match="unequal"):
        ScoredPairs(name="x", sentence1=["a", "b"], sentence2=["c"], scores=[1.0, 2.0])
    with pytest.raises(OpencseError, match="no sentence pair"):
        ScoredPairs(name="x", sentence1=[], sentence2=[], scores=[])
    with pytest.raises(OpencseError, match="pair 1"):
        ScoredPairs(name="x", sentence1=["a", "b"], sentence2=["c", "d"], scores=[1.0, math.nan])


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
