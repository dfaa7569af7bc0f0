"""Every argument that takes a path takes the same rows in memory, with the same result."""

from __future__ import annotations

import datasets
import pandas as pd
import pyarrow as pa
import pytest
from safetensors.numpy import load_file

import opencse
from opencse.commands.options import EvaluateOptions, TrainOptions
from opencse.evaluation import read_pairs
from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.written_sets import load_guard
from opencse.foundation.errors import OpencseError
from tests.tiny import WORDS, tiny_bert

SENTENCES = [f"the {a} {b} runs in the {b}" for a in WORDS[:4] for b in WORDS[4:8]]
ROWS = [{"text": text, "negative": f"no {text}"} for text in SENTENCES]
PAIRS = [
    {"sentence1": text, "sentence2": SENTENCES[(3 * i) % 16], "score": (i * i) % 5}
    for i, text in enumerate(SENTENCES)
]
SETTINGS = [
    "training.max_steps=2",
    "training.batch_size=4",
    "training.precision=fp32",
    "encoder.pooling=mean",
    "selection.every=1",
]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def forms(rows, folder):
    """Return the same rows in memory and as a saved folder, by the name of the kind."""
    dataset = datasets.Dataset.from_list(rows)
    dataset.save_to_disk(folder)
    named = {
        "dicts": rows,
        "pandas": pd.DataFrame(rows),
        "dataset": dataset,
        "split": datasets.DatasetDict({"train": dataset}),
        "folder": folder,
        "arrow": pa.Table.from_pylist(rows),
    }
    try:
        import polars
    except ImportError:
        return named
    return {**named, "polars": polars.DataFrame(rows)}


def test_rows_in_memory_train_to_equal_weights(tmp_path, backbone) -> None:
    """The corpus and the development pairs, in every form."""
    pairs = forms(PAIRS, tmp_path / "pairs")
    trained = {}
    for name, corpus in forms(ROWS, tmp_path / "rows").items():
        result = opencse.train(
            "hince",
            corpus,
            backbone=backbone,
            out=tmp_path / name,
            dev=pairs[name],
            overrides=SETTINGS,
            progress=False,
        )
        weights = load_file(result.model / "model.safetensors")
        trained[name] = (result.outcome.best_score, {k: v.tobytes() for k, v in weights.items()})
    first = trained.pop("dicts")
    for name, other in trained.items():
        assert other == first, name


def test_a_run_takes_pairs_paraphrases_and_text_from_memory(tmp_path, backbone) -> None:
    table = pd.DataFrame({"text": SENTENCES, "paraphrase": SENTENCES[::-1]})
    (tmp_path / "recipe.toml").write_text(
        'extends = "simcse"\n[with.paraphrases.losses.info_nce]\npositive = "paraphrase"\n'
        '[with.paraphrases.build.paraphrase]\nkind = "candidate_table"\npath = ""\nwindow = [0, 1]\n'
    )
    result = opencse.run(
        tmp_path / "recipe.toml",
        SENTENCES,
        backbone=backbone,
        out=tmp_path / "out",
        pairs=datasets.Dataset.from_list(PAIRS),
        dev=PAIRS,
        paraphrases=table,
        overrides=SETTINGS,
        progress=False,
    )
    (task,) = result.after["pairs"].results
    assert task.task.startswith("pairs-")
    assert task.rows == len(PAIRS)
    card = (result.run.model / "README.md").read_text()
    assert "texts in memory (list), paraphrases from texts in memory (DataFrame)" in card


def test_evaluate_takes_one_table_or_several(tmp_path, backbone) -> None:
    frame = pd.DataFrame(PAIRS)
    file = tmp_path / "pairs.parquet"
    frame.to_parquet(file)
    options = EvaluateOptions(backbone, pairs=frame)
    assert len(options.pairs) == 1
    assert EvaluateOptions(backbone, pairs=PAIRS).pairs == (PAIRS,)
    scored = opencse.evaluate(backbone, pooling="mean", pairs=[frame, frame.head(9), file])
    scores = {task.task: task.score for task in scored.results["pairs"].results}
    assert len(scores) == 3
    assert scores["pairs"] == scores[read_pairs(PAIRS).name]


def test_probe_data_and_guards_come_from_memory(tmp_path) -> None:
    sentences = pd.DataFrame({"sentence": SENTENCES, "negation": SENTENCES[::-1]})
    data = load_probe_data(pairs=pd.DataFrame(PAIRS), sentences=sentences)
    assert data.sentences.anchors == tuple(SENTENCES)
    assert data.sentences.name == "texts in memory (DataFrame)"
    assert len(data.pairs[0]) == len(PAIRS)
    (searches,) = load_guard(["a cat", "a dog"], documents=SENTENCES)
    assert {"a cat", "a dog"} <= {str(text) for text in searches.texts()}
    topics = pd.DataFrame({"topic": ["a", "b"] * 8, "text": SENTENCES})
    both = load_guard({"topics": topics, "searches": ["a cat"], "documents": SENTENCES})
    assert [task.name for task in both] == ["guard-topics", "guard-searches"]


def test_mistakes_in_tables_in_memory_are_named(tmp_path, backbone) -> None:
    with pytest.raises(OpencseError, match="no score among sentence1"):
        read_pairs(pd.DataFrame(PAIRS).drop(columns="score"))
    several = datasets.DatasetDict(
        {"a": datasets.Dataset.from_list(PAIRS), "b": datasets.Dataset.from_list(PAIRS)}
    )
    with pytest.raises(OpencseError, match="the splits a, b"):
        read_pairs(several)
    (tmp_path / "folder").mkdir()
    for option in ("dev", "guard"):
        with pytest.raises(OpencseError, match=r"no such file|is a folder|holds no guard"):
            given = {option: tmp_path / "folder" / "nothing"}
            opencse.train("simcse", SENTENCES, backbone=backbone, out=tmp_path / "out", **given)
    with pytest.raises(OpencseError, match="a text is int"):
        opencse.check(backbone, [1, 2])
    assert TrainOptions("simcse", SENTENCES, backbone=backbone, out="o", callbacks=3).callbacks == (
        3,
    )
