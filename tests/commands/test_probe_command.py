from __future__ import annotations

import json

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from opencse.commands.main import app as APP
from tests.evaluation.probes.helpers import write_sentences
from tests.tiny import tiny_bert


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folders = []
    for seed in (0, 1):
        bare = tiny_bert(tmp_path_factory.mktemp("bert"), seed=seed)
        folder = tmp_path_factory.mktemp("model") / f"model-{seed}"
        SentenceTransformer(str(bare), device="cpu").save(str(folder))
        folders.append(folder)
    return folders


def run(*arguments: object):
    return CliRunner().invoke(APP, ["probe", *map(str, arguments)], env={"OPENCSE_DATA": ""})


def test_two_models_on_own_sentences_and_pairs(models, tmp_path):
    mine = write_sentences(tmp_path / "mine.tsv")
    scored = tmp_path / "scored.csv"
    scored.write_text("sentence1,sentence2,score\na dog,the dog runs,4\na cat,red house,0\nbread,apple,2\na,b,3\n")
    result = run(*models, "--sentences", mine, "--pairs", scored, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "Paraphrase above negation" in result.output
    document = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert list(document["models"]) == ["model-0", "model-1"]
    first = document["models"]["model-0"]
    assert first["settings"]["model"] == str(models[0])
    assert first["scores"]["transformations"]["paraphrase_above_negation"]["rows"] == 4
    assert len(first["settings"]["weights sha256"]) == 64
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")
