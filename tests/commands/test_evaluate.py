from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import opencse
from opencse.commands.main import app as APP
from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.reranker import Reranker
from opencse.debias.shipped import append_block
from opencse.encoder import load_encoder, save_encoder
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows
from tests.evaluation.probes.helpers import write_sentences
from tests.tiny import saved_encoder, tiny_bert


@pytest.fixture
def model(tmp_path, monkeypatch) -> str:
    """The folder of a tiny sentence-transformers model."""
    monkeypatch.delenv("OPENCSE_DATA", raising=False)
    return str(saved_encoder(tmp_path))


@pytest.fixture
def pairs(tmp_path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(
        "sentence1,sentence2,score\na dog,the dog runs,4\na cat,red house,0\nbread,apple,2\n"
    )
    return path


def run(*arguments: object):
    return CliRunner().invoke(APP, ["evaluate", *map(str, arguments)], catch_exceptions=True)


def test_table_on_screen_and_json_in_a_file(model, pairs, tmp_path):
    result = run(model, "--pairs", pairs, "-o", tmp_path / "out" / "scores.json")
    assert result.exit_code == 0, result.output
    assert "mine" in result.output
    document = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert document["model"] == model
    assert document["pooling"] == "mean"
    assert document["tasks"]["mine"]["rows"] == 3
    assert document["average"]["score"] == document["tasks"]["mine"]["metrics"]["spearman"]
    assert len(document["weights_sha256"]) == 64
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["scores.json"]


def test_a_model_with_a_block_is_scored_reranked_too(tmp_path, monkeypatch):
    encoder = load_encoder(saved_encoder(tmp_path), device="cpu")
    append_block(encoder, MeaningBlock.beside(encoder, code=3, inner=5).eval())
    save_encoder(encoder, tmp_path / "blocked")
    length = load_encoder(tmp_path / "blocked", device="cpu").get_embedding_dimension()
    monkeypatch.setattr(
        Reranker,
        "similarity",
        lambda _, a, b: -(unit_rows(a[:, :length]) @ unit_rows(b[:, :length]).T),
    )
    rows = [("a dog", "the dog runs", 4), ("a cat", "red house", 0), ("bread", "apple", 2)]
    (tmp_path / "some.csv").write_text(
        "\n".join(["sentence1,sentence2,score", *(",".join(map(str, r)) for r in rows)])
    )
    result = run(
        tmp_path / "blocked", "--pairs", tmp_path / "some.csv", "-o", tmp_path / "scores.json"
    )
    assert result.exit_code == 0, result.output
    by_cosine, reranked = json.loads((tmp_path / "scores.json").read_text())["models"]
    assert (by_cosine["similarity"], reranked["model"]) == (
        "cosine",
        f"{by_cosine['model']}, reranked",
    )
    first, second = (each["tasks"]["some"]["metrics"]["spearman"] for each in (by_cosine, reranked))
    assert second == pytest.approx(-first)
    assert (
        opencse.evaluate(tmp_path / "blocked", pairs=[tmp_path / "some.csv"]).settings["similarity"]
        == "cosine"
    )


def test_without_data_it_says_how_to_get_some(model):
    error = run(model).exception
    assert isinstance(error, OpencseError)
    assert "OPENCSE_DATA" in error.remedy
    assert "get_transfer_data.bash" in error.remedy
    assert "hub" in error.remedy


def test_any_subset_by_name_with_one_encode_pass(model, tmp_path):
    data = tmp_path / "data"
    (data / "mine").mkdir(parents=True)
    for part in ("train", "test"):
        (data / "mine" / f"{part}.tsv").write_text(
            "label\ttext\nx\ta dog\ny\ta cat\nx\tthe dog\ny\tthe cat\n"
        )
    (data / "order").mkdir()
    (data / "order" / "test.jsonl").write_text(
        '{"query": "a dog", "positive": ["the dog"], "negative": ["a cat"]}\n'
    )
    result = run(model, "--data", data, "--tasks", "mine, order", "-o", tmp_path / "s.json")
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "s.json").read_text())
    assert {name: task["suite"] for name, task in document["tasks"].items()} == {
        "mine": "classification",
        "order": "reranking",
    }
    assert document["averages"]["reranking"]["of"] == ["order"]
    assert "average" not in document
    assert isinstance(run(model, "--data", data, "--tasks", "yours").exception, OpencseError)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return [saved_encoder(tmp_path_factory.mktemp("tiny"), seed=seed) for seed in (0, 1)]


def probe(*arguments: object):
    return CliRunner().invoke(APP, ["probe", *map(str, arguments)], env={"OPENCSE_DATA": ""})


def test_two_models_on_own_sentences_and_pairs(models, pairs, tmp_path):
    mine = write_sentences(tmp_path / "mine.tsv")
    result = probe(*models, "--sentences", mine, "--pairs", pairs, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "Paraphrase above negation" in result.output
    document = json.loads((tmp_path / "out" / "probe.json").read_text())
    names = [f"{folder.parent.name}/model" for folder in models]
    assert list(document["models"]) == names
    first = document["models"][names[0]]
    assert first["settings"]["model"] == str(models[0])
    assert first["scores"]["transformations"]["paraphrase_above_negation"]["rows"] == 4
    assert len(first["settings"]["weights sha256"]) == 64
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_pooling_is_for_encoders_that_have_none(tmp_path, monkeypatch):
    plain = tiny_bert(tmp_path / "plain")
    pooled = tmp_path / "pooled"
    save_encoder(load_encoder(plain, pooling="cls"), pooled, "")
    monkeypatch.setattr("opencse.commands.probe.run_probes", lambda *_: ProbeScores(sts=()))
    found = opencse.probe([str(plain), str(pooled)], pooling="mean")
    assert [each.settings["pooling"] for each in found.scores.values()] == ["mean", "cls"]
