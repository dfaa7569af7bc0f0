from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from opencse.commands.compare import compare_groups, paired_bootstrap
from opencse.commands.main import app as APP
from opencse.commands.run_groups import group_runs, read_run
from opencse.foundation.errors import OpencseError
from tests.commands.run_folders import seven, write_run
from tests.tiny import tiny_bert


def groups(tmp_path, averages: dict[str, list[float]]):
    runs = []
    for recipe, values in averages.items():
        for seed, value in enumerate(values, 1):
            folder = write_run(tmp_path / recipe / f"seed-{seed}", recipe=recipe, seed=seed, scores=seven(value))
            runs.append(read_run(folder))
    return group_runs(runs)


def test_means_and_spreads(tmp_path):
    found = compare_groups(groups(tmp_path, {"simcse": [76.0, 77.0, 78.0], "osscse": [78.0, 79.0, 80.5]}))
    first, second = found.rows
    assert first.average.mean == pytest.approx(77.0)
    assert first.average.deviation == pytest.approx(1.0)
    assert first.difference is None
    assert second.difference == pytest.approx(79.1667 - 77, abs=1e-3)
    assert second.interval is None
    assert first.seconds.mean == pytest.approx(102.0)
    assert "no pairs to resample" in " ".join(found.notes)


def test_one_seed_is_said_to_be_one(tmp_path):
    found = compare_groups(groups(tmp_path, {"simcse": [76.0], "osscse": [78.0, 79.0]}))
    assert found.rows[0].average.deviation is None
    assert found.rows[1].difference == pytest.approx(2.5)
    text = found.table().markdown()
    assert "76.00 (n = 1)" in text
    assert "78.50 ± 0.71" in text
    assert "may be chance" in text


def test_an_undefined_score_is_no_part_of_an_average(tmp_path):
    runs = [
        read_run(write_run(tmp_path / "a", seed=1, scores=seven(76.0) | {"STS13": None})),
        read_run(write_run(tmp_path / "b", seed=2, scores=seven(76.0))),
    ]
    found = compare_groups(group_runs(runs))
    assert found.rows[0].tasks["STS13"].mean is None
    assert found.rows[0].average.mean is None
    assert found.rows[0].tasks["STS12"].mean == pytest.approx(73.0)
    assert "undefined" in found.table().markdown()
    json.dumps(asdict(found), allow_nan=False)


def test_runs_scored_on_different_sets_are_refused(tmp_path):
    some = read_run(write_run(tmp_path / "a", scores={"STS12": 70.0}, seed=1))
    seven_ = read_run(write_run(tmp_path / "b", scores=seven(76.0), seed=2))
    none = read_run(write_run(tmp_path / "c", seed=3))
    with pytest.raises(OpencseError, match="scored on STS12"):
        compare_groups(group_runs([some, seven_]))
    with pytest.raises(OpencseError, match="no scores that all runs have"):
        compare_groups(group_runs([some, none]))


def models(noise: float, seed: int, golds):
    rng = np.random.default_rng(seed)
    return [gold + noise * rng.normal(size=len(gold)) for gold in golds]


def test_the_bootstrap_finds_a_difference_and_no_difference():
    golds = [np.random.default_rng(i).integers(0, 26, 300) / 5 for i in range(2)]
    good, bad = models(0.5, 1, golds), models(2.0, 2, golds)
    low, high = paired_bootstrap(golds, [good], [bad], resamples=200)
    assert 0 < low < high
    assert paired_bootstrap(golds, [good, bad], [bad, good], resamples=100) == pytest.approx((0, 0))
    assert paired_bootstrap(golds, [good], [bad], resamples=200) == (low, high)


def test_the_bootstrap_of_constant_scores_is_undefined():
    gold = [np.arange(5.0)]
    assert paired_bootstrap(gold, [[np.zeros(5)]], [[np.arange(5.0)]], resamples=100) is None


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
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["rows"][1]["difference"] == 2


def test_with_the_models_and_pairs(runs, tmp_path):
    for recipe in runs:
        for seed in (1, 2):
            bare = tiny_bert(tmp_path / "bert" / recipe.name / str(seed), seed=seed + 10 * (recipe.name == "osscse"))
            SentenceTransformer(str(bare), device="cpu").save(str(recipe / f"seed-{seed}" / "model"))
    scored = tmp_path / "scored.tsv"
    rows = ["a dog\tthe dog runs\t4", "a cat\tred house\t0", "bread\tapple\t2", "the man\tthe woman\t3", "a b\tc d\t1"]
    scored.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n")
    result = run(*runs, "--pairs", scored)
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "paired bootstrap" in result.output
    assert "scored" in result.output
