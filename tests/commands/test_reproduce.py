from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from opencse.commands import reproduce as module
from opencse.commands.main import app
from opencse.commands.reproduce import reproduce
from opencse.evaluation import ScoredPairs, TaskResult, sts
from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.suites import Evaluation
from opencse.evaluation.task import Results
from opencse.foundation.errors import OpencseError
from opencse.papers import runs as reproduced_runs
from opencse.papers.entries import Entry, entry_names, load_entry
from opencse.papers.runs import MeasuredModel, Reproduction, task_scores
from opencse.papers.scores import TaskMetrics, TaskScores
from opencse.text.corpus import Corpus
from tests.tiny import tiny_bert

QUICK = [
    "training.max_steps=2",
    "training.batch_size=4",
    "training.precision=fp32",
    "selection.every=2",
]
SENTENCES = [
    f"The {size} cat runs."
    for size in ("big", "old", "small", "red", "blue", "green", "white", "black")
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SMALL", str(tiny_bert(tmp_path / "bert", layers=1)))


def test_a_table_of_two_systems_is_made_and_its_runs_are_shared(
    tmp_path, options, monkeypatch
) -> None:
    table = reproduce("byop/table-2", **options, seeds=[1])
    assert list(table.rows) == ["SimCSE", "+BYOP-D", "+BYOP-D-M"]
    for cells, printed in zip(table.rows.values(), (75.83, 76.81, 76.43), strict=True):
        (cell,) = cells
        assert (len(cell.values), cell.printed) == (1, printed)
    assert table.markdown() == (tmp_path / "papers" / "byop" / "table-2.md").read_text()
    runs = sorted((tmp_path / "papers" / "runs").glob("*.json"))
    assert len(runs) == 3

    def no_training(*_, **__):
        raise OpencseError("not trained before")

    monkeypatch.setattr(module, "run", no_training)
    assert reproduce("byop/table-2", **options, seeds=[1]).rows == table.rows
    other = reproduce("diffcse/table-1", **options, seeds=[1])
    assert other.rows["SimCSE"][0].values == table.rows["SimCSE"][0].values[:1], (
        "another table, the same run"
    )
    assert other.rows["DiffCSE"][-1].missing == "not trained before"


def test_a_system_that_cannot_be_had_leaves_a_gap_with_its_reason(
    tmp_path, corpus, small, monkeypatch
) -> None:
    def refuse(*_, **__):
        raise OpencseError("no memory")

    monkeypatch.setattr(module, "run", refuse)
    notes = []
    table = reproduce(
        "osscse/table-4",
        out=tmp_path / "papers",
        corpus=corpus,
        progress=False,
        notify=notes.append,
    )
    assert str(table.rows["SimCSE"][-1].shown()) == "not had: no memory (76.25)"
    assert str(table.rows["PCL"][-1].shown()) == "not had: no memory (78.42)"
    entry = load_entry("diffcse/table-1")
    (system,) = [each for each in entry.systems if each.missing]
    assert system.missing == "not reproducible: CMLM was trained on 1 TB of text"
    assert any("SimCSE" in note for note in notes)


def test_the_command_lists_the_tables_and_splits_need_the_sts_data(tmp_path) -> None:
    result = CliRunner().invoke(app, ["reproduce"])
    assert "osscse/table-4" in result.output
    with pytest.raises(OpencseError, match="--data"):
        reproduce("osscse/table-2", out=tmp_path)


def test_transfer_tasks_are_scored_on_the_trained_models_and_kept(options, monkeypatch) -> None:
    scored: list[str] = []

    def evaluate(model, *, tasks, **_):
        scored.extend(tasks)
        if tasks != ["CR"]:
            raise OpencseError(f"there is no {tasks[0]}")
        result = TaskResult(
            task="CR",
            main="accuracy",
            metrics={"accuracy": 81.5},
            rows=2,
            data_sha256="",
            details={},
        )
        return Evaluation(results={"transfer": Results(results=(result,))}, settings={})

    monkeypatch.setattr(module, "evaluate", evaluate)
    for repeated in (False, True):
        table = reproduce("diffcse/table-2", **options)
        cells = dict(zip(table.columns, table.rows["SimCSE"], strict=True))
        assert (cells["CR"].values, cells["MR"].missing) == ((81.5,), "there is no MR")
        assert str(cells["Avg."].shown()) == "not had: not every column is there (85.56)"
        assert ("CR" in scored) is not repeated, "what was measured is read from its file"
        scored.clear()


def test_every_metric_that_an_entry_asks_of_sts_b_is_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sts, "PUBLISHED_ROWS", {("STS-B", "dev"): 4, ("STS-B", "test"): 4})
    (tmp_path / "STSB").mkdir()
    pairs = (
        ("a cat", "a dog", 5),
        ("a cat", "cats", 4.5),
        ("it rains", "it snows", 1),
        ("on", "off", 0),
    )
    table = "sentence1\tsentence2\tsentence1_senteval\tsentence2_senteval\tscore\n"
    table += "".join(
        f"{first}\t{second}\t{first}\t{second}\t{score}\n" for first, second, score in pairs
    )
    for split in ("dev", "test"):
        (tmp_path / "STSB" / f"{split}.tsv").write_text(table)
    columns = {
        column
        for name in entry_names()
        for column in load_entry(name).columns
        if column.startswith("STS-B d")
    }
    columns |= {"STS-B test: alignment", "STS-B test: uniformity"}
    asked = Entry(name="x/y", title="T", kind="tasks", columns=tuple(sorted(columns)))
    untouched = MeasuredModel(folder=tmp_path / "run", given="mini-mlm", pooling="mean")

    def score_task(model, task):
        scored = module.evaluate(model.model, data=tmp_path, tasks=[task], pooling=model.pooling)
        return next(iter(scored.results.values())).results[0]

    scores = task_scores(asked, untouched, score_task)
    assert "STS-B dev: spearman" in columns
    assert all(isinstance(scores.value(column), float) for column in asked.parsed_columns), scores


@pytest.mark.slow
def test_curves_are_watched_while_training_and_drawn(tmp_path, corpus, small) -> None:
    table = reproduce(
        "byop/figure-4", out=tmp_path, corpus=corpus, overrides=QUICK, seeds=[1, 2], progress=False
    )
    assert table.columns == ("alignment", "uniformity")
    assert all(len(cell.values) == 2 for cells in table.rows.values() for cell in cells)
    for quantity in table.columns:
        assert (tmp_path / "byop" / f"figure-4-{quantity}.svg").read_text().count("BYOP-D-M") == 1
    (log, *_) = sorted((tmp_path / "runs").glob("*/metrics.jsonl"))
    watched = [json.loads(line) for line in log.read_text().splitlines() if "alignment" in line]
    assert [line["step"] for line in watched] == [0, 2]  # eight rows in batches of four: two steps
    assert all(line["uniformity"] < 0 < line["alignment"] for line in watched)


@pytest.mark.slow
def test_training_sentences_are_watched_with_dropout(tmp_path, corpus, small) -> None:
    table = reproduce("byop/figure-2", out=tmp_path, corpus=corpus, overrides=QUICK, progress=False)
    alignment, uniformity = (cell.values[0] for cell in table.rows["SimCSE"])
    assert uniformity < 0 < alignment
    curve = tmp_path / "byop" / "figure-2-training-alignment"
    assert curve.with_suffix(".svg").is_file()
    assert curve.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_a_small_run_stands_for_the_first_family_whichever_it_is(
    tmp_path, corpus, small, monkeypatch
) -> None:
    monkeypatch.setattr(Reproduction, "trained", lambda *_: MeasuredModel(folder=tmp_path / "run"))
    scores = TaskScores(tasks={"CR": TaskMetrics(main=80.0)})
    monkeypatch.setattr(reproduced_runs, "task_scores", lambda *_: scores)
    table = reproduce("osscse/table-5", out=tmp_path, corpus=corpus, progress=False)
    assert list(table.rows) == ["SimCSE", "SimCSE + Prompt", "OssCSE", "OssCSE, recall loss alone"]
    assert str(table.rows["OssCSE"][1].shown()) == "80.00 (88.13)"


@pytest.fixture
def options(tmp_path, small, corpus):
    return {"out": tmp_path / "papers", "corpus": corpus, "overrides": QUICK, "progress": False}


@pytest.fixture
def triplets(tmp_path):
    path = tmp_path / "triplets.tsv"
    rows = [f"{text}\tA cat runs fast.\tNo cat runs." for text in SENTENCES]
    path.write_text("\n".join(["text\tentailment\tcontradiction", *rows]) + "\n", encoding="utf-8")
    return path


def test_the_pairs_of_two_models_are_drawn_and_the_supervised_one_learns_from_triplets(
    options, triplets
) -> None:
    table = reproduce("osscse/figure-1", **options, triplets=triplets)
    for cells in table.rows.values():
        assert [len(cell.values) for cell in cells] == [1, 1, 1, 1]
    assert table.rows["SimCSE"][2].values[0] > table.rows["SimCSE"][3].values[0], (
        "a paraphrase changes more words"
    )
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
    pairs = ScoredPairs(
        name="STS-B", sentence1=texts, sentence2=texts[1:] + texts[:1], scores=[2.0] * len(texts)
    )
    asked = []
    monkeypatch.setattr(
        reproduced_runs, "load_sts", lambda data, **settings: asked.append(settings) or [pairs]
    )
    with pytest.raises(OpencseError, match="STS-B"):
        reproduce("diffcse/table-9", **options)
    monkeypatch.setattr(module, "load_probe_data", lambda **_: load_probe_data())
    monkeypatch.setattr("opencse.commands.checks.sts_data", lambda _: None)
    monkeypatch.setattr(Reproduction, "trained", lambda *_: MeasuredModel(folder=tmp_path))
    monkeypatch.setattr(MeasuredModel, "embedder", lambda _: letters)
    table = reproduce("diffcse/table-9", **options, data="sts")
    assert asked[0] == {"text": "raw", "tasks": ["STS-B"], "split": "test"}
    assert all(1 <= cell.values[0] <= len(texts) for cell in table.rows["DiffCSE"])
    assert len(table.listing) == 1 + 3 * 3


def letters(texts):
    return np.array([[text.count(letter) + 0.1 for letter in "abcdefghijklmnop"] for text in texts])


@pytest.mark.slow
def test_sentences_of_untouched_and_trained_models_are_projected(options) -> None:
    table = reproduce("byop/figure-1", **options)
    assert all(
        -1 <= cells[0].values[0] <= 1 and 0 < cells[1].values[0] <= 100
        for cells in table.rows.values()
    )
    assert (options["out"] / "byop" / "figure-1.svg").read_text().count("mean cosine") == len(
        table.rows
    )


def test_the_rows_of_a_run_are_what_it_made_of_the_corpus(tmp_path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a\n")
    run = MeasuredModel(folder=tmp_path / "run", corpus=Corpus(corpus))
    assert run.rows == run.corpus
    (tmp_path / "run").mkdir()
    for name in ("corpus.parquet", "mixture.parquet"):  # the later step first
        pq.write_table(pa.table({"text": ["b"]}), tmp_path / "run" / name)
        assert run.rows.path.name == name
