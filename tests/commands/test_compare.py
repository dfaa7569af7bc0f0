from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from opencse.commands.compare import (
    compare_groups,
    compare_searches,
    group_verdict,
    render_search_comparison,
    written_scores,
)
from opencse.commands.main import app as APP
from opencse.commands.reports.page import write_page
from opencse.debias.payload import Parts
from opencse.evaluation.bootstrap import PairScores
from opencse.foundation.errors import OpencseError
from opencse.training.run_groups import (
    FinishedRun,
    find_runs,
    group_runs,
    parse_seeds,
    read_run,
    seed_folders,
)
from tests.tiny import saved_encoder


def groups(tmp_path, averages: dict[str, list[float]]):
    runs = []
    for recipe, values in averages.items():
        for seed, value in enumerate(values, 1):
            folder = write_run(
                tmp_path / recipe / f"seed-{seed}", recipe=recipe, seed=seed, scores=seven(value)
            )
            runs.append(read_run(folder))
    return group_runs(runs)


def compared(runs: Mapping[str, list[FinishedRun]]) -> list[dict[str, str]]:
    table = compare_groups(runs, written_scores([run for each in runs.values() for run in each]))
    return [dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows]


def test_means_and_spreads(tmp_path):
    first, second = compared(
        groups(tmp_path, {"simcse": [76.0, 77.0, 78.0], "osscse": [78.0, 79.0, 80.5]})
    )
    assert (first["average"], first["against the first"], first["seconds"]) == (
        "77.00 ± 1.00",
        "",
        "102",
    )
    assert (second["seeds"], second["against the first"]) == ("1 2 3", "+2.17")


def test_one_seed_is_said_to_be_one(tmp_path):
    runs = groups(tmp_path, {"simcse": [76.0], "osscse": [78.0, 79.0]})
    first, second = compared(runs)
    assert (first["average"], second["average"]) == ("76.00 (n = 1)", "78.50 ± 0.71")
    assert second["against the first"] == "+2.50"
    assert (
        "may be chance"
        in compare_groups(
            runs, {run: run.scores["sts"] for each in runs.values() for run in each}
        ).markdown()
    )


def test_the_verdict_on_runs_looks_at_every_seed() -> None:
    apart = group_verdict({"simcse": [76.0, 77.0], "osscse": [78.0, 79.0]})
    assert apart == (
        "osscse averages 2.00 points above simcse; every seed is on that side of all seeds of simcse."
    )
    assert group_verdict({"a": [76.0, 78.0], "b": [77.0, 79.0]}).endswith("their seeds overlap.")
    assert group_verdict({"a": [76.0, 78.0], "b": [70.0]}).endswith("can't tell that from chance.")
    assert group_verdict({"a": [76.0], "b": []}).startswith("Can't say")
    same = group_verdict({"a": [76.0, 76.5], "b": [77.0, 77.5]}, uncertain={"b"})
    assert same.endswith("the interval over test pairs includes 0.")


def test_an_undefined_score_is_no_part_of_an_average(tmp_path):
    runs = [
        read_run(write_run(tmp_path / "a", seed=1, scores=seven(76.0) | {"STS13": None})),
        read_run(write_run(tmp_path / "b", seed=2, scores=seven(76.0))),
    ]
    (row,) = compared(group_runs(runs))
    assert (row["STS13"], row["average"], row["STS12"]) == (
        "undefined",
        "undefined",
        "73.00 ± 0.00",
    )


def test_runs_scored_on_different_sets_are_refused(tmp_path):
    some = read_run(write_run(tmp_path / "a", scores={"STS12": 70.0}, seed=1))
    seven_ = read_run(write_run(tmp_path / "b", scores=seven(76.0), seed=2))
    none = read_run(write_run(tmp_path / "c", seed=3))
    with pytest.raises(OpencseError, match="scored on STS12"):
        written_scores([seven_, some])
    with pytest.raises(OpencseError, match="no scores that all runs have"):
        written_scores([some, none])


@pytest.fixture
def runs(tmp_path):
    for recipe, average in (("simcse", 76.0), ("osscse", 78.0)):
        for seed in (1, 2):
            write_run(
                tmp_path / "runs" / recipe / f"seed-{seed}",
                recipe=recipe,
                seed=seed,
                scores=seven(average + seed),
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
    assert names == {"comparison.md", "comparison.json", "comparison.html"}
    page = (tmp_path / "out" / "comparison.html").read_text()
    assert "points above simcse on bert-base-uncased" in page
    assert (
        "| simcse on bert-base-uncased | 1 2 |" in (tmp_path / "out" / "comparison.md").read_text()
    )
    written = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [run["seed"] for run in written["osscse on bert-base-uncased"]] == [1, 2]


def test_with_the_models_and_pairs(runs, tmp_path):
    for recipe in runs:
        for seed in (1, 2):
            saved_encoder(recipe / f"seed-{seed}", seed=seed + 10 * (recipe.name == "osscse"))
    scored = tmp_path / "scored.tsv"
    rows = [
        "a dog\tthe dog runs\t4",
        "a cat\tred house\t0",
        "bread\tapple\t2",
        "the man\tthe woman\t3",
        "a b\tc d\t1",
    ]
    scored.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n")
    result = run(*runs, "--pairs", scored)
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "scored" in result.output
    assert "does not cover other seeds" in " ".join(result.output.split())


def test_the_difference_of_averages_has_an_interval_over_pairs(tmp_path):
    runs = groups(tmp_path, {"poor": [70.0, 70.0], "good": [90.0, 90.0]})
    gold = np.arange(300) / 300
    pairs = {}
    for label, members in runs.items():
        for seed, member in enumerate(members):
            errors = np.random.default_rng(seed).normal(size=300)
            noise = 1.0 if "poor" in label else 0.1
            pairs[member] = {"toy": PairScores(gold=gold, predicted=gold + noise * errors)}
    scores = {run: run.scores["sts"] for members in runs.values() for run in members}
    first, second = compare_groups(runs, scores, pairs).rows
    assert first[-2] == ""
    low, high = re.fullmatch(r"\+20\.00 \(\+([\d.]+) to \+([\d.]+)\)", str(second[-2])).groups()
    assert 50 < float(low) < float(high) < 90  # the correlations of these pairs, not the 20 above


RECIPE = """title = "A remark"

[[losses]]
kind = "info_nce"
name = "info_nce"
temperature = {temperature}

[training]
seed = {seed}
log_every = 25

[published]
bert-base = 76.25
"""


def write_run(
    folder: Path,
    *,
    seed: int = 1,
    recipe: str = "simcse",
    variant: str = "sound",
    scores: Mapping[str, float | None] | None = None,
    temperature: float = 0.05,
    corpus: str = "c0ffee",
    finished: bool = True,
) -> Path:
    folder.mkdir(parents=True)
    record = {
        "recipe": recipe,
        "variant": variant,
        "backbone": "models/bert-base-uncased",
        "rows": 1000,
        "seed": seed,
        "fingerprint": {"recipe": "", "corpus": corpus, "backbone": "abc123def"},
    }
    if finished:
        record["outcome"] = {"steps": 250, "seconds": 100.0 + seed}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "recipe.toml").write_text(RECIPE.format(seed=seed, temperature=temperature))
    if scores is not None:
        tasks = [
            {"task": task, "main": "spearman", "metrics": {"spearman": score}}
            for task, score in scores.items()
        ]
        (folder / "results.json").write_text(
            json.dumps({"before": {}, "after": {"sts": {"tasks": tasks}}})
        )
    return folder


def seven(average: float) -> dict[str, float]:
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    return {task: average + index - 3 for index, task in enumerate(tasks)}


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path):
    folders = seed_folders(tmp_path / "simcse", [2, 10, 1])
    assert list(folders) == [2, 10, 1]
    for seed, folder in folders.items():
        write_run(folder, seed=seed)
    found = find_runs([tmp_path / "simcse", folders[1]])
    assert sorted(found) == sorted(folder.resolve() for folder in folders.values())
    ((label, runs),) = group_runs([read_run(folder) for folder in found]).items()
    assert [run.seed for run in runs] == [1, 2, 10]
    assert label == "simcse on bert-base-uncased"


def test_what_differs_makes_another_group_and_is_named(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2)
    write_run(tmp_path / "c", seed=1, temperature=0.1)
    write_run(tmp_path / "d", seed=1, variant="faithful")
    write_run(tmp_path / "e", seed=1, corpus="beef01")
    write_run(tmp_path / "f", seed=1)  # the same as a
    groups = group_runs([read_run(tmp_path / name) for name in "abcdef"])
    assert [len(runs) for runs in groups.values()] == [2, 1, 1, 1]
    name = "simcse on bert-base-uncased"
    assert list(groups) == [
        f"{name}: {tmp_path / 'a'}",
        f"{name}: {tmp_path / 'c'}",
        "simcse (faithful) on bert-base-uncased",
        f"{name}: {tmp_path / 'e'}",
    ]


def test_what_a_run_says_is_read_and_bad_folders_are_named(tmp_path):
    for path, problem in [(tmp_path / "none", "no such folder"), (tmp_path, "holds no run")]:
        with pytest.raises(OpencseError, match=problem):
            find_runs([path])
    with pytest.raises(OpencseError, match="not finished"):
        read_run(write_run(tmp_path / "half", finished=False))
    damages = [
        ("run.json", "{", "not JSON"),
        ("run.json", "[]", "not a JSON object"),
        ("run.json", '{"outcome": {}}', "not written by a run"),
        ("recipe.toml", "= 3", "recipe.toml: not valid TOML"),
    ]
    for number, (file, content, problem) in enumerate(damages):
        folder = write_run(tmp_path / f"bad {number}", scores=seven(1.0))
        (folder / file).write_text(content)
        with pytest.raises(OpencseError, match=problem):
            read_run(folder)
    run = read_run(write_run(tmp_path / "a", seed=3, scores=seven(77.0)))
    assert (run.seconds, run.steps, run.scores["sts"]["STS12"]) == (103.0, 250, 74.0)
    with pytest.raises(OpencseError, match="itself a run"):
        seed_folders(tmp_path / "a", [1])


@pytest.mark.parametrize("text", ["", "1,,2", "a", "1,1", "1-2", "-3"])
def test_seeds_are_numbers_without_repetition(text):
    assert [parse_seeds(good) for good in ("1,2, 3", "42")] == [[1, 2, 3], [42]]
    with pytest.raises(OpencseError, match="not a seed"):
        parse_seeds(text)


TEXTS = [f"text {i}" for i in range(30)]
QUERIES = ["query 3", "query 17", "text 5"]


def number(text: str) -> float:
    return float(text.split()[-1])


def along(texts) -> np.ndarray:
    """Nearest are the texts of near numbers."""
    angles = np.array([number(text) for text in texts]) / 30
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def by_digit(texts) -> np.ndarray:
    """Nearest are the texts of the same last digit."""
    angles = np.array([number(text) % 10 + number(text) / 1000 for text in texts]) / 10
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture(scope="module")
def found():
    return replace(compare_searches(along, by_digit, TEXTS, QUERIES), old="along", new="digit")


def test_a_model_changes_nothing_against_itself_and_one_text_cannot_be_searched() -> None:
    same = compare_searches(along, along, TEXTS, QUERIES)
    assert (same.overlap.value, same.same_first.value, same.strength) == (1, 1, None)
    assert "No list of hits changes" in render_search_comparison(same)
    assert "hits shared" not in str(vars(same.__rich__())), "searches that stay are not shown"
    with pytest.raises(OpencseError, match="one text"):
        compare_searches(np.ones, np.ones, ["a", "a"], ["b"])  # type: ignore[arg-type]


def test_lists_and_ranks_by_hand_in_which_a_query_does_not_find_itself(found) -> None:
    pair = next(pair for pair in found.lists if pair.query == "query 3")
    assert [hit.text for hit in pair.old[:3]] == ["text 3", "text 2", "text 4"]
    assert {hit.text for hit in pair.new[:3]} == {"text 3", "text 13", "text 23"}
    assert [len(pair.old), len(pair.new)] == [10, 10]
    assert pair.shared == len({hit.text for hit in pair.old} & {hit.text for hit in pair.new})
    assert found.lists[0].shared <= found.lists[-1].shared
    pair = next(pair for pair in found.lists if pair.query == "text 5")
    assert "text 5" not in [hit.text for hit in (*pair.old, *pair.new)]


def test_the_hits_of_a_model_with_a_block_are_reranked() -> None:
    by_cosine = compare_searches(along, along, TEXTS, QUERIES)

    class Backwards:
        """Ranks the farthest first."""

        length = along([TEXTS[0]]).shape[1]

        def packed(self, texts, show_progress_bar):
            return along(texts)

        def similarity(self, queries, hits):
            return 1 - queries @ hits.T

        def unpacked(self, packed):
            ones = np.ones((len(packed), 2), np.float32)
            return Parts(vectors=packed, code=ones, topic=ones, asks=np.zeros(len(packed), bool))

    found = compare_searches(along, along, TEXTS, QUERIES, Backwards())  # type: ignore[arg-type]
    reranked = {pair.query: pair for pair in found.lists}
    for pair in by_cosine.lists:
        assert reranked[pair.query].old == pair.old
        assert {hit.agreement for hit in pair.new} == {None}
        assert {hit.agreement for hit in reranked[pair.query].new} == {1.0}
        assert reranked[pair.query].new[0].text == min(
            TEXTS, key=lambda text: float(along([pair.query, text])[0] @ along([text])[0])
        )


def test_the_page_shows_both_lists_and_escapes_texts(found, tmp_path) -> None:
    page = render_search_comparison(found)
    assert page.count('<div class="query">') == len(QUERIES)
    assert page.index('"name c0">along') < page.index('"name c1">digit')
    evil = replace(found.lists[0], query="</script><script>alert(1)</script>")
    assert "<script" not in render_search_comparison(replace(found, lists=(evil,)))
    write_page(tmp_path, "search", page, asdict(found))
    assert json.loads((tmp_path / "search.json").read_text())["texts"] == len(TEXTS)
