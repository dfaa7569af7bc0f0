"""Comparison of groups of runs: scores over seeds, differences from a baseline, training time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from opencse.commands.comparison.comparison_table import Comparison, GroupRow
from opencse.commands.comparison.run_groups import Group, RunRecord
from opencse.commands.comparison.statistics import paired_bootstrap, spread
from opencse.evaluation import Encode, ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine, spearman
from opencse.foundation.errors import OpencseError

Cosines = list[np.ndarray]
RunScores = dict[RunRecord, Mapping[str, float | None]]


def pair_cosines(
    encoders: Mapping[RunRecord, Callable[[], Encode]], sets: Sequence[ScoredPairs]
) -> dict[RunRecord, Cosines]:
    """Return the cosines of all test pairs for every run, with one model in memory at a time.

    Args:
        encoders: By run, a function that loads its model.
        sets: The test sets.
    """
    texts = list(dict.fromkeys(text for each in sets for text in (*each.sentence1, *each.sentence2)))
    cosines = {}
    for run, load in encoders.items():
        embeddings = TextEmbeddings(texts, np.asarray(load()(texts)))
        cosines[run] = [paired_cosine(embeddings(each.sentence1), embeddings(each.sentence2)) for each in sets]
    return cosines


def compare_groups(
    groups: Sequence[Group],
    *,
    suite: str | None = None,
    sets: Sequence[ScoredPairs] = (),
    cosines: Mapping[RunRecord, Cosines] | None = None,
    resamples: int = 1000,
) -> Comparison:
    """Compare groups of runs with the first group.

    Args:
        groups: Groups, the baseline first.
        suite: Suite of results.json to compare; by default `sts`, or else the first that all runs have.
        sets: Test sets on which the models were evaluated again.
        cosines: Cosines of every run on `sets` (`pair_cosines`); scores are then computed from these, and a bootstrap
            over pairs is possible.
        resamples: Number of bootstrap samples.

    Raises:
        OpencseError: There is no group, or no score that all runs have.
    """
    if not groups:
        raise OpencseError("there is no run to compare", "Name run folders.")
    if cosines is not None:
        suite = "sts" if {each.name for each in sets} >= {"STS12", "STS-B"} else "pairs"
        scores: RunScores = {run: _from_pairs(sets, values) for run, values in cosines.items()}
    else:
        suite = suite or _common_suite(groups)
        scores = {run: _suite_scores(run, suite) for group in groups for run in group.runs}
    tasks = _common_tasks(scores)
    averages = [[_average(scores[run], tasks) for run in group.runs] for group in groups]
    first = spread(averages[0]).mean
    rows = []
    for group, found in zip(groups, averages, strict=True):
        average, interval = spread(found), None
        if group is not groups[0] and cosines is not None:
            ours, theirs = ([cosines[run] for run in each.runs] for each in (group, groups[0]))
            interval = paired_bootstrap([each.gold for each in sets], ours, theirs, resamples=resamples)
        difference = None
        if group is not groups[0] and average.mean is not None and first is not None:
            difference = average.mean - first
        steps = {run.steps for run in group.runs}
        rows.append(
            GroupRow(
                label=group.label,
                seeds=tuple(run.seed for run in group.runs),
                tasks={task: spread([scores[run][task] for run in group.runs]) for task in tasks},
                average=average,
                before=_before(group, suite, tasks),
                difference=difference,
                interval=interval,
                seconds=spread([run.seconds for run in group.runs]),
                steps=steps.pop() if len(steps) == 1 else None,
            )
        )
    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if cosines is None:
        notes.append("Without --data there are no pairs to resample: the scores are those of each run's results.json.")
    else:
        notes.append("Interval: 95 %, paired bootstrap of the test pairs; it covers new test pairs for these models.")
    if any(len(group.runs) == 1 for group in groups):
        notes.append(
            "A group with one seed has no standard deviation: its difference may be chance (run more --seeds)."
        )
    notes += [note for group in groups for note in group.notes]
    return Comparison(suite=suite, rows=tuple(rows), notes=tuple(notes))


def _before(group: Group, suite: str, tasks: Sequence[str]) -> float | None:
    """Return the average of the untouched backbone if all runs agree on it."""
    found = {
        _average(run.before[suite], tasks) if suite in run.before and set(tasks) <= set(run.before[suite]) else None
        for run in group.runs
    }
    return found.pop() if len(found) == 1 else None


def _from_pairs(sets: Sequence[ScoredPairs], cosines: Cosines) -> dict[str, float | None]:
    values = {each.name: spearman(each.gold, cosine) for each, cosine in zip(sets, cosines, strict=True)}
    return {name: None if value is None else 100 * value for name, value in values.items()}


def _average(scores: Mapping[str, float | None], tasks: Sequence[str]) -> float | None:
    """Return the mean over tasks; None if one of them is undefined."""
    values = [scores[task] for task in tasks]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined and len(defined) == len(values) else None


def _common_suite(groups: Sequence[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    shared = [suite for suite in runs[0].after if all(suite in run.after for run in runs)]
    if not shared:
        run_without = next((run for run in runs if not run.after), runs[-1])
        raise OpencseError(
            f"{run_without.folder}: holds no scores that all runs have",
            "Pass --data or --pairs, so that the models are evaluated now.",
        )
    return "sts" if "sts" in shared else shared[0]


def _suite_scores(run: RunRecord, suite: str) -> Mapping[str, float | None]:
    if suite not in run.after:
        raise OpencseError(f"{run.folder}: holds no scores of the suite {suite!r}", "Pass --data or --pairs.")
    return run.after[suite]


def _common_tasks(scores: RunScores) -> list[str]:
    first, *others = scores.items()
    for run, found in others:
        if set(found) != set(first[1]):
            raise OpencseError(
                f"{run.folder}: scored on {', '.join(found)}, but {first[0].folder} on {', '.join(first[1])}",
                "Pass --data or --pairs, so that all are evaluated on the same.",
            )
    return list(first[1])
