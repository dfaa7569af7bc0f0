from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from opencse.commands.evaluate import VectorEncoder, load_mteb
from opencse.commands.main import app
from opencse.encoder.embedder import Embedder
from opencse.evaluation import distinct_texts, evaluate_tasks, load_sts
from opencse.foundation.errors import OpencseError

mteb = pytest.importorskip("mteb", reason="the extra `mteb` is not installed")

PARTS = {"default": "qrels", "corpus": "corpus", "queries": "queries", "top_ranked": "top_ranked"}
DOCUMENTS = {
    "1_doc1": "opened items can be returned",
    "1_doc2": "opened items cannot be returned",
    "2_doc1": "the pool is open today",
    "2_doc2": "the pool is closed today",
}
QUERIES = {
    "1_q1": "can be returned",
    "1_q2": "cannot be returned",
    "2_q1": "open",
    "2_q2": "closed",
}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, tmp_path):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("OPENCSE_DATA", raising=False)


def repository(folder: Path, queries: Mapping[str, str], *, reranking: bool) -> Path:
    """Write a data set as the hub has it: a folder of files, with their parts and splits named in the card."""
    folder.mkdir(parents=True)
    judged = {query: query.replace("q", "doc") for query in queries}
    rows: dict[str, list[dict[str, object]]] = {
        "corpus": [{"_id": name, "title": "", "text": text} for name, text in DOCUMENTS.items()],
        "queries": [{"_id": name, "text": text} for name, text in queries.items()],
        "qrels": [
            {"query-id": query, "corpus-id": document, "score": 1}
            for query, document in judged.items()
        ],
    }
    if reranking:
        pairs = {query: [f"{query[0]}_doc1", f"{query[0]}_doc2"] for query in queries}
        rows["top_ranked"] = [
            {"query-id": query, "corpus-ids": pair} for query, pair in pairs.items()
        ]
    card = ["---", "configs:"]
    for part, file in PARTS.items():
        if file in rows:
            (folder / f"{file}.jsonl").write_text(
                "".join(f"{json.dumps(row)}\n" for row in rows[file])
            )
            split = "test" if file in ("qrels", "top_ranked") else file
            card += [
                f"- config_name: {part}",
                f"  data_files: [{{split: {split}, path: {file}.jsonl}}]",
            ]
    (folder / "README.md").write_text("\n".join([*card, "---", ""]))
    return folder


@pytest.fixture
def nevir(tmp_path) -> Path:
    """A folder with NevIR's data set, of two pairs."""
    repository(tmp_path / "data" / "NevIR-mteb", QUERIES, reranking=True)
    return tmp_path / "data"


def by_document(near: Mapping[str, str]):
    """Return a model for which each query is nearest to the document that it is given."""
    documents = list(DOCUMENTS.values())

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.eye(4, dtype=np.float32)[
            [documents.index(near.get(text, text)) for text in texts]
        ]

    return encode


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("1_doc1 1_doc2 2_doc1 2_doc2", 100),
        ("1_doc1 1_doc2 2_doc1 2_doc1", 50),
        ("1_doc1 1_doc1 2_doc2 2_doc2", 0),
    ],
)
def test_a_pair_counts_if_both_of_its_queries_find_their_own_document(
    nevir, answers, expected
) -> None:
    (task,) = load_mteb(["mteb:NevIR"], nevir)["mteb"]
    assert sorted(task.texts()) == sorted([*DOCUMENTS.values(), *QUERIES.values()])
    near = {
        query: DOCUMENTS[name]
        for query, name in zip(QUERIES.values(), answers.split(), strict=True)
    }
    result = evaluate_tasks(by_document(near), [task])["NevIR"]
    assert (result.main, result.score) == ("paired_accuracy", pytest.approx(expected))
    assert "Weller et al." in result.details["published"]


def test_another_similarity_ranks_the_documents(nevir) -> None:
    (task,) = load_mteb(["mteb:NevIR"], nevir)["mteb"]
    near = dict(zip(QUERIES.values(), DOCUMENTS.values(), strict=True))
    found = evaluate_tasks(
        by_document(near), [task], lambda a, b: 1 - torch.as_tensor(a) @ torch.as_tensor(b).T
    )
    assert found["NevIR"].score == 0, "each query is nearest to the other document"


def test_the_folder_of_one_task_is_not_that_of_the_next(nevir) -> None:
    load_mteb(["mteb:NevIR"], nevir)
    with pytest.raises(OpencseError, match="the data of NevIR is not in a folder"):
        load_mteb(["mteb:NevIR"], None)


def test_nanobeir_is_a_suite_of_its_tasks(tmp_path) -> None:
    names = [task.metadata.name for task in mteb.get_benchmark("NanoBEIR").tasks]
    for name in names:
        repository(tmp_path / name, QUERIES, reranking=False)
    suites = load_mteb(["nanobeir"], tmp_path)
    assert {suite: [task.name for task in tasks] for suite, tasks in suites.items()} == {
        "NanoBEIR": names
    }
    near = dict(zip(QUERIES.values(), DOCUMENTS.values(), strict=True))
    found = evaluate_tasks(by_document(near), suites["NanoBEIR"])
    assert found.average == pytest.approx(100)
    assert {each.main for each in found.results} == {"ndcg_at_10"}


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        (
            "mteb:NevIR",
            None,
            "FOLDER/NevIR-mteb, a copy of the hub's data set orionweller/NevIR-mteb",
        ),
        ("mteb:NevIR", "here", "the data of NevIR is not in "),
        ("mteb:NevIR", "hub", "the data of NevIR cannot be read from hub"),
        ("mteb:ExcluIR", "here", "has no task or benchmark 'ExcluIR'"),
    ],
)
def test_what_is_missing_is_one_line(tmp_path, name, source, told) -> None:
    with pytest.raises(OpencseError) as error:
        load_mteb([name], tmp_path if source == "here" else source)
    assert told in str(error.value)


def test_damaged_data_is_told(nevir) -> None:
    (nevir / "NevIR-mteb" / "qrels.jsonl").write_text("{not json")
    with pytest.raises(OpencseError, match="the data of NevIR cannot be read from"):
        load_mteb(["mteb:NevIR"], nevir)


def test_several_models_stand_side_by_side(nevir, tiny_model, tmp_path) -> None:
    models = [str(tmp_path / name) for name in ("before", "after")]
    for model in models:
        tiny_model.save_pretrained(model)
    asked = [
        "evaluate",
        *models,
        "--tasks",
        "mteb:NevIR",
        "--data",
        str(nevir),
        "-o",
        str(tmp_path / "scores.json"),
    ]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    lines = done.stdout.splitlines()
    assert lines[0].split() == models
    assert lines[1].startswith("NevIR, paired_accuracy")
    assert "published: 25.0 by chance" in lines[2]
    documents = json.loads((tmp_path / "scores.json").read_text())["models"]
    assert [each["model"] for each in documents] == models
    assert documents[0]["tasks"]["NevIR"]["details"]["data"] == str(nevir / "NevIR-mteb")


@pytest.mark.parametrize("real", [False, True])
def test_sts_equals_mteb_on_the_same_rows(tiny_model, some_pairs, request, real):
    from datasets import Dataset, DatasetDict

    pairs = (
        load_sts(request.getfixturevalue("data_folder"), tasks=["STS-B"], text="raw")[0]
        if real
        else some_pairs
    )
    texts = distinct_texts([pairs])
    kept = dict(
        zip(texts, Embedder(tiny_model)(texts), strict=True)
    )  # whatever a text is encoded with

    def encode(wanted):
        return np.stack([kept[text] for text in wanted])

    task = mteb.get_task("STSBenchmark")
    columns = {
        "sentence1": list(pairs.sentence1),
        "sentence2": list(pairs.sentence2),
        "score": list(pairs.scores),
    }
    task.dataset, task.data_loaded = DatasetDict({"test": Dataset.from_dict(columns)}), True
    found = mteb.evaluate(VectorEncoder(encode), task, cache=None, show_progress_bar=False)
    (theirs,) = found.task_results[0].scores["test"]
    ours = evaluate_tasks(encode, [pairs])[pairs.name].metrics
    assert ours["spearman"] == pytest.approx(100 * theirs["spearman"], abs=1e-6)
    assert ours["pearson"] == pytest.approx(
        100 * theirs["pearson"], abs=1e-4
    )  # float32 inside mteb
    # Its main score is by another formula of the cosine, which sets near ties in another order.
    assert ours["spearman"] == pytest.approx(100 * theirs["cosine_spearman"], abs=2e-3)
