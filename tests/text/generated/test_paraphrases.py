"""Candidates of a table, and translations there and back."""

from __future__ import annotations

import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.generated import paraphrases
from opencse.text.generated.paraphrases import FREQUENT
from opencse.text.views.registry import BackTranslation, CandidateTable

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


def test_candidates_are_chosen_by_window_and_pick(rows, table):
    view, unknown = chosen(rows, CandidateTable(path=table, label_columns=("pivot",)))
    assert (view.text, view.rule) == (FEW[2], "c")
    assert view.scores == {"mer": pytest.approx(3 / 8), "candidates": 5}
    assert (unknown.text, unknown.rule) == (None, "no candidate")
    assert chosen(rows, CandidateTable(path=table, window=(0.1, 0.3)))[0].text == FEW[1]
    assert (
        chosen(rows, CandidateTable(path=table, window=(0.1, 1.0), pick="highest"))[0].text
        == FEW[3]
    )
    picks = {
        chosen(rows, CandidateTable(path=table, window=(0.1, 1.0), pick="random"), seed=s)[0].text
        for s in range(30)
    }
    assert picks == set(FEW[1:4])
    assert chosen(rows, CandidateTable(path=table, window=(0.0, 0.05)))[0].rule == "none in window"


def test_wrong_tables_and_models_are_named(tmp_path, table, marian):
    with pytest.raises(OpencseError, match="no column 'pair'"):
        CandidateTable(path=table, candidate_column="pair").open()
    with pytest.raises(OpencseError, match="no such file"):
        CandidateTable(path=str(tmp_path / "none.parquet")).open()
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(OpencseError, match="not a complete Parquet"):
        CandidateTable(path=str(tmp_path / "bad.parquet")).open()
    with pytest.raises(ValueError, match="window"):
        CandidateTable(path=table, window=(0.6, 0.1))
    with pytest.raises(OpencseError, match="no/such"):
        BackTranslation(models=(("no/such", marian),)).open()
    with pytest.raises(ValueError, match="pairs"):
        BackTranslation(models=())
    with pytest.raises(ValueError, match="window"):
        BackTranslation(models=((marian, marian),), window=(0.5, 0.1))


def test_digest_follows_the_file(tmp_path, table):
    before = CandidateTable(path=table).open().digest
    pq.write_table(pa.table({"text": ["a"], "candidate": ["b"]}), table)
    assert CandidateTable(path=table).open().digest != before


TEXTS = [
    "The old dog sits in the garden.",
    "a man",
    "A happy child reads a green book today.",
    " ",
    "x" * 2000,
]
SHAPE = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
WIDE = {"window": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(paraphrases, "_MAX_NEW_TOKENS", 8)
    monkeypatch.setattr(paraphrases, "_BATCH", 2)


def test_there_and_back_within_the_window(marian, rows):
    spec = BackTranslation(models=((marian, marian),), beams=2, **WIDE)
    views = spec.open()(rows(*TEXTS))
    assert views[0].rule == marian
    assert 0 <= views[0].scores["mer"] <= 1
    assert [view.rule for view in views[3:]] == ["no candidate", "no candidate"]
    assert [view.text for view in views[:3]] == [
        spec.open()([row])[0].text for row in rows(*TEXTS[:3])
    ]
    spec = BackTranslation(models=((marian, marian),), beams=1, **{**WIDE, "window": (0.0, 0.01)})
    assert spec.open()(rows(TEXTS[0]))[0].rule == "none in window"


@pytest.mark.slow
def test_pivots_and_variants_are_candidates(marian, rows):
    spec = BackTranslation(
        models=((marian, marian),) * 2, variants=2, noise="insert_or_mask", **WIDE
    )
    views = spec.open(seed=1)(rows(*TEXTS[:3]))
    assert {view.scores["candidates"] for view in views} == {4}
    assert views == spec.open(seed=1)(rows(*TEXTS[:3]))
    assert views != spec.open(seed=2)(rows(*TEXTS[:3]))


def test_noise_of_both_kinds_is_one_of_them_by_chance():
    """DebCSE §4.2: one or two frequent words are put in, or one or two words are masked."""
    spec = BackTranslation(models=(("there", "back"),), noise="insert_or_mask")
    noisy = [
        spec.noisy("one two three four", "[UNK]", random.Random(seed)).split() for seed in range(60)
    ]
    assert len(FREQUENT) > 90
    assert all(
        set(words) - {"[UNK]"} <= {"one", "two", "three", "four", *FREQUENT} for words in noisy
    )
    assert 15 < sum("[UNK]" in words for words in noisy) < 45
    assert all(("[UNK]" in words) == (len(words) == 4) for words in noisy)


def test_weights_as_a_pickle_are_refused_and_the_way_out_is_named(marian, tmp_path):
    folder = shutil.copytree(marian, tmp_path / "pickle")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(OpencseError, match=r"pickled weights, which can run code.*safetensors"):
        BackTranslation(models=((str(folder), str(folder)),)).open()
