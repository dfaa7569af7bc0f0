from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.commands import reproduce as module
from opencse.commands.reproduce import reproduce
from opencse.commands.reproduction import runs as reproduced_runs
from opencse.commands.reproduction.runs import StoredRun
from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes import load_probe_data
from opencse.foundation.errors import OpencseError
from opencse.text.corpus import Corpus
from tests.tiny import tiny_bert

QUICK = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32", "selection.every=2"]
SENTENCES = [f"The {size} cat runs." for size in ("big", "old", "small", "red", "blue", "green", "white", "black")]


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SMALL", str(tiny_bert(tmp_path / "bert", layers=1)))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return {"out": tmp_path / "papers", "corpus": corpus, "overrides": QUICK, "progress": False}


@pytest.fixture
def triplets(tmp_path):
    path = tmp_path / "triplets.tsv"
    rows = [f"{text}\tA cat runs fast.\tNo cat runs." for text in SENTENCES]
    path.write_text("\n".join(["text\tentailment\tcontradiction", *rows]) + "\n", encoding="utf-8")
    return path


def test_the_pairs_of_two_models_are_drawn_and_the_supervised_one_learns_from_triplets(options, triplets) -> None:
    table = reproduce("osscse/figure-1", **options, triplets=triplets)
    for cells in table.rows.values():
        assert [len(cell.values) for cell in cells] == [1, 1, 1, 1]
    assert table.rows["SimCSE"][2].values[0] > table.rows["SimCSE"][3].values[0], "a paraphrase changes more words"
    figures = {path.name for path in (options["out"] / "osscse").glob("*.svg")}
    assert figures == {f"figure-1-{name}.svg" for name in ("paraphrase", "negation", "simcse")}


def test_training_pairs_are_measured_by_the_first_model(options, triplets) -> None:
    table = reproduce("debcse/figure-1", **options, triplets=triplets)
    same, other = table.rows["SimCSE"], table.rows["SimCSE, supervised"]
    assert str(same[0].shown()) == "1.00 (1.00)"
    assert same[2].values[0] == pytest.approx(1.0, abs=1e-4)
    assert other[0].values[0] < 1
    assert {path.name for path in (options["out"] / "debcse").glob("*.svg")} == {
        "figure-1-positive.svg",
        "figure-1-negative.svg",
    }


def test_queries_are_searched_among_the_sentences_of_stsb(options, tmp_path, monkeypatch) -> None:
    texts = [f"{text} {number}" for number in range(140) for text in SENTENCES]
    pairs = ScoredPairs(name="STS-B", sentence1=texts, sentence2=texts[1:] + texts[:1], scores=[2.0] * len(texts))
    asked = []
    monkeypatch.setattr(reproduced_runs, "load_sts", lambda data, **settings: asked.append(settings) or [pairs])
    with pytest.raises(OpencseError, match="STS-B"):
        reproduce("diffcse/table-9", **options)
    monkeypatch.setattr(module, "load_probe_data", lambda **_: load_probe_data())
    monkeypatch.setattr(reproduced_runs, "_trained", lambda *_: StoredRun(folder=tmp_path, scores={}))
    monkeypatch.setattr(reproduced_runs, "_embedder", lambda _: letters)
    table = reproduce("diffcse/table-9", **options, data="sts")
    assert asked[0] == {"text": "raw", "tasks": ["STS-B"], "split": "test"}
    assert all(1 <= cell.values[0] <= len(texts) for cell in table.rows["DiffCSE"])
    assert len(table.listing) == 1 + 3 * 3


def letters(texts):
    return np.array([[text.count(letter) + 0.1 for letter in "abcdefghijklmnop"] for text in texts])


@pytest.mark.slow
def test_sentences_of_untouched_and_trained_models_are_projected(options) -> None:
    table = reproduce("byop/figure-1", **options)
    assert all(-1 <= cells[0].values[0] <= 1 and 0 < cells[1].values[0] <= 100 for cells in table.rows.values())
    assert (options["out"] / "byop" / "figure-1.svg").read_text().count("mean cosine") == len(table.rows)


def test_the_rows_of_a_run_are_what_it_made_of_the_corpus(tmp_path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a\n")
    run = StoredRun(folder=tmp_path / "run", scores={}, corpus=Corpus(corpus))
    assert run.rows == run.corpus
    (tmp_path / "run").mkdir()
    for name in ("corpus.parquet", "mixture.parquet"):  # the later step first
        pq.write_table(pa.table({"text": ["b"]}), tmp_path / "run" / name)
        assert run.rows.path.name == name


def test_whitening_equals_the_closed_form(monkeypatch) -> None:
    monkeypatch.setattr(reproduced_runs, "_WHITENED", 64)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + 100 * rng.normal(size=6)
    texts = [str(i) for i in range(500)]

    def encode(texts):
        return vectors[[int(text) for text in texts]].astype(np.float32)

    _, s, components = np.linalg.svd(np.cov(vectors.T))
    expected = (vectors - vectors.mean(axis=0)) @ (components.T / np.sqrt(s))
    actual = reproduced_runs.whitened(encode, iter(texts))(texts)
    assert actual.dtype == np.float32
    assert np.abs(np.abs(actual) - np.abs(expected)).max() < 1e-3  # eigenvectors have no sign
    with pytest.raises(OpencseError, match="given 6 sentences"):
        reproduced_runs.whitened(encode, texts[:6])
