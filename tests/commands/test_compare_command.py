from __future__ import annotations

import json

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from opencse.commands.main import app as APP
from tests.commands.comparison.folders import seven, write_run
from tests.tiny import tiny_bert


@pytest.fixture
def runs(tmp_path):
    for recipe, average in (("simcse", 76.0), ("osscse", 78.0)):
        for seed in (1, 2):
            write_run(
                tmp_path / "runs" / recipe / f"seed-{seed}", recipe=recipe, seed=seed, scores=seven(average + seed)
            )
    return [tmp_path / "runs" / recipe for recipe in ("simcse", "osscse")]


def run(*arguments: object):
    return CliRunner().invoke(APP, ["compare", *map(str, arguments)])


def test_from_what_the_runs_wrote(runs, tmp_path):
    result = run(*runs, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "simcse on bert-base-uncased" in result.output
    assert "77.50 ± 0.71" in result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"comparison.md", "comparison.json"}
    assert "| simcse on bert-base-uncased | 1 2 |" in (tmp_path / "out" / "comparison.md").read_text()
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["suite"] == "sts"


def test_with_the_models_and_pairs(runs, tmp_path):
    for recipe in runs:
        for seed in (1, 2):
            bare = tiny_bert(tmp_path / "bert" / recipe.name / str(seed), seed=seed + 10 * (recipe.name == "osscse"))
            SentenceTransformer(str(bare), device="cpu").save(str(recipe / f"seed-{seed}" / "model"))
    scored = tmp_path / "scored.tsv"
    rows = ["a dog\tthe dog runs\t4", "a cat\tred house\t0", "bread\tapple\t2", "the man\tthe woman\t3", "a b\tc d\t1"]
    scored.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n")
    result = run(*runs, "--pairs", scored, "--resamples", 200)
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "paired bootstrap" in result.output
    assert "scored" in result.output
