from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from opencse.commands.comparison.compare_groups import compare_groups, pair_cosines, paired_bootstrap, spread
from opencse.commands.comparison.run_groups import group_runs, read_run
from opencse.foundation.errors import OpencseError
from tests.commands.comparison.folders import seven, write_run
from tests.evaluation.probes.helpers import bag_of_words, pairs


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
    assert first.before is None  # the seeds disagree, since the test made it so
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


def test_pairs_are_resampled_where_models_are_there(tmp_path):
    chosen = groups(tmp_path, {"simcse": [76.0], "osscse": [78.0]})
    chance = np.random.default_rng(0)
    words = "a b c d e f g h".split()
    texts = [" ".join(chance.choice(words, 4)) for _ in range(80)]
    from opencse.text.surface import lexical_overlap

    overlap = lexical_overlap(texts[:40], texts[40:])
    toy = pairs(list(zip(texts[:40], texts[40:], overlap.tolist(), strict=True)), "toy")
    noise = {}

    def noisy(batch):
        clean = bag_of_words(batch)
        return clean + np.array([noise.setdefault(t, chance.normal(size=64) * 30) for t in batch])

    (worse,), (better,) = (group.runs for group in chosen)
    cosines = pair_cosines({worse: lambda: noisy, better: lambda: bag_of_words}, [toy])
    found = compare_groups(chosen, sets=[toy], cosines=cosines, resamples=300)
    assert found.suite == "pairs"
    assert 0 < found.rows[1].interval[0] < found.rows[1].difference < found.rows[1].interval[1]
    assert "paired bootstrap" in found.table().markdown()


def test_spread_of_one_and_of_none():
    assert (spread([76.0]).mean, spread([76.0]).deviation) == (76.0, None)
    assert spread([1.0, 3.0]).deviation == pytest.approx(2**0.5)
    assert spread([76.0, None]).mean is None
    assert spread([]).mean is None


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
