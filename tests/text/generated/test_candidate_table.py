from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.views.registry import CandidateTable

TEXT = "the dog runs in the park today"
FEW = [
    "The dog runs in the park today",  # a copy
    "the dog runs in the park now",  # 1 of 7
    "a dog is running in the park today",  # 3 of 8
    "today the park has a running dog in it",  # far
    "a dog is running in the park today",  # again
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "candidates.parquet"
    pq.write_table(pa.table({"text": [TEXT] * 5, "candidate": FEW, "pivot": list("abcde")}), path)
    return str(path)


def chosen(rows, spec, seed=0):
    return spec.open(seed=seed)(rows(TEXT, "unknown"))


def test_highest_rate_in_the_window(rows, table):
    view, unknown = chosen(rows, CandidateTable(path=table, label_columns=("pivot",)))
    assert (view.text, view.rule) == (FEW[2], "c")
    assert view.scores == {"mer": pytest.approx(3 / 8), "candidates": 5}
    assert (unknown.text, unknown.rule) == (None, "no candidate")


def test_other_windows_and_picks(rows, table):
    assert chosen(rows, CandidateTable(path=table, window=(0.1, 0.3)))[0].text == FEW[1]
    assert chosen(rows, CandidateTable(path=table, window=(0.1, 1.0), pick="highest"))[0].text == FEW[3]
    picks = {
        chosen(rows, CandidateTable(path=table, window=(0.1, 1.0), pick="random"), seed=s)[0].text for s in range(30)
    }
    assert picks == set(FEW[1:4])
    assert chosen(rows, CandidateTable(path=table, window=(0.0, 0.05)))[0].rule == "none in window"


def test_what_is_wrong_is_named(tmp_path, table):
    with pytest.raises(OpencseError, match="no column 'pair'"):
        CandidateTable(path=table, candidate_column="pair").open()
    with pytest.raises(OpencseError, match="no such file"):
        CandidateTable(path=str(tmp_path / "none.parquet")).open()
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(OpencseError, match="not a whole Parquet"):
        CandidateTable(path=str(tmp_path / "bad.parquet")).open()
    with pytest.raises(ValueError, match="window"):
        CandidateTable(path=table, window=(0.6, 0.1))


def test_digest_follows_the_file(tmp_path, table):
    before = CandidateTable(path=table).open().digest
    pq.write_table(pa.table({"text": ["a"], "candidate": ["b"]}), table)
    assert CandidateTable(path=table).open().digest != before
