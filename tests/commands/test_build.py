from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from opencse.commands.main import app as APP
from opencse.evaluation.probes import load_probe_data
from opencse.foundation.errors import OpencseError

RECIPE = """
extends = "simcse"
title = "Probe"

[build.negation]
kind = "negation"

[build.shorter]
kind = "deletion"

[build.substitution]
kind = "substitution"
model = "not-opened-in-this-test"
"""


@pytest.fixture
def run(tmp_path: Path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "corpus.txt").write_text("The drug is safe.\n\nShe has a red car.\n")

    def call(*options: str, recipe: str = str(tmp_path / "recipe.toml")):
        words = [
            recipe,
            str(tmp_path / "corpus.txt"),
            "-o",
            str(tmp_path / "views"),
            "--workers",
            "1",
            *options,
        ]
        return CliRunner().invoke(APP, ["build", *words], catch_exceptions=False)

    return call


def test_builds_and_reports(run, tmp_path):
    result = run("--only", "negation", "--only", "shorter", "--stats")
    assert result.exit_code == 0
    rows = pq.read_table(tmp_path / "views").to_pylist()
    assert [row["negation"] for row in rows] == [
        "The drug is not safe.",
        "She does not have a red car.",
    ]
    assert "negation" in result.stdout
    assert "match error rate" in result.stdout
    assert "copula 1, do-support VBZ 1" in result.stdout


def test_only_brings_what_is_needed_and_a_recipe_may_build_nothing(run):
    with pytest.raises(OpencseError, match="not-opened-in-this-test"):
        run("--only", "substitution")
    with pytest.raises(OpencseError, match="no such column"):
        run("--only", "paraphrase")
    with pytest.raises(OpencseError, match="builds no column"):
        run(recipe="simcse")


def test_overwrite(run, tmp_path):
    run("--only", "shorter")
    with pytest.raises(OpencseError, match="built with other settings"):
        run("--only", "shorter", "--seed", "1")
    assert run("--only", "shorter", "--seed", "1", "--overwrite").exit_code == 0


def test_the_six_transformations_of_osscse_are_what_the_probe_reads(run, tmp_path):
    sentences = [
        "The drug is safe for small children.",
        "She has a red car in the garden.",
        "Nobody was not there.",
    ]
    (tmp_path / "corpus.txt").write_text("\n".join(sentences) + "\n")
    versions = [
        "The drug is safe for little children.",
        "Small children can take this medicine without any risk.",
    ]
    (tmp_path / "table.csv").write_text(
        "text,candidate\n" + "".join(f"{sentences[0]},{each}\n" for each in versions)
    )
    with pytest.raises(OpencseError, match="chosen from a table"):
        run(recipe="transformations")
    assert (
        run(
            "--set", f"build.paraphrase.path={tmp_path}/table.csv", recipe="transformations"
        ).exit_code
        == 0
    )
    first, second, third = pq.read_table(tmp_path / "views").to_pylist()
    assert first["paraphrase"] == versions[1], "the most dissimilar one"
    assert (first["negation"], third["negation"]) == (
        "The drug is not safe for small children.",
        None,
    )
    counts = {"insertion": 1, "substitution": 0, "deletion": -1}
    for row in (first, second):
        length = len(row["text"].split())
        assert {name: len(row[name].split()) - length for name in counts} == counts
        assert row["random"] in {*sentences} - {row["text"]}
    probed = load_probe_data(sentences=tmp_path / "views").sentences
    assert {"paraphrase", "negation", *counts, "random"} <= {*probed.kinds}
