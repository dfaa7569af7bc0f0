"""Comparison of groups of runs: scores over seeds, differences from a baseline, training time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.commands.comparison.run_groups import Group, RunRecord
from opencse.evaluation import Encode, ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine, spearman
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import Cell, Number, Table

Cosines = list[np.ndarray]
RunScores = dict[RunRecord, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and sample standard deviation of scores over seeds; None if a score is undefined, or for a single run."""

    mean: float | None
    deviation: float | None

    def number(self) -> Number:
        """Return both for a cell of a table."""
        alone = self.mean is not None and self.deviation is None
        return Number(self.mean, deviation=self.deviation, aside="n = 1" if alone else "")


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """Results of one group of runs.

    Attributes:
        label: Recipe and backbone of the group.
        seeds: Seeds of its runs.
        tasks: Mean and deviation over seeds of each task's score.
        average: The same for the average over tasks.
        before: Average of the untouched backbone; None if it was not measured, is undefined, or differs between runs.
        difference: Mean average minus that of the baseline; None for the baseline itself, or if undefined.
        interval: 95 % interval of the difference over test pairs (bootstrap); None without pairs.
        seconds: Training time in seconds, over seeds.
        steps: Number of steps; None if it differs between runs.
    """

    label: str
    seeds: tuple[int, ...]
    tasks: Mapping[str, Spread]
    average: Spread
    before: float | None
    difference: float | None
    interval: tuple[float, float] | None
    seconds: Spread
    steps: int | None


@dataclass(frozen=True, kw_only=True)
class Comparison(JupyterMixin):
    """All groups, scored on the same tasks; displayed as a table in a terminal (rich) and in a notebook.

    Attributes:
        suite: `sts`, `pairs`, or another suite of results.json.
        rows: Results of each group; the first group is the baseline.
        notes: Remarks for the reader.
    """

    suite: str
    rows: tuple[GroupRow, ...]
    notes: tuple[str, ...]

    def __rich__(self) -> RenderableType:
        return self.table()

    def table(self) -> Table:
        """Return a row for each group, with the notes."""
        tasks = list(self.rows[0].tasks)
        several, measured = len(tasks) > 1, any(row.before is not None for row in self.rows)
        rows: list[list[Cell]] = []
        for row in self.rows:
            between = "" if row.interval is None else " to ".join(str(Number(end, signed=True)) for end in row.interval)
            gain: Cell = "" if row.difference is None else Number(row.difference, aside=between, signed=True)
            scores = [*row.tasks.values(), *([row.average] if several else [])]
            before: list[Cell] = [] if not measured else ["" if row.before is None else Number(row.before)]
            seconds: Cell = "" if row.seconds.mean is None else Number(row.seconds.mean, 0)
            steps: Cell = "differ" if row.steps is None else row.steps
            found = (each.number() for each in scores)
            rows.append([row.label, " ".join(map(str, row.seeds)), *found, *before, gain, steps, seconds])
        heads = ["run", "seeds", *tasks, *["average"] * several, *["backbone"] * measured]
        return Table([*heads, "against the first", "steps", "seconds"], rows, notes=self.notes)


def spread(scores: Sequence[float | None]) -> Spread:
    """Return the mean and standard deviation, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Spread(mean=None, deviation=None)
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Spread(mean=float(np.mean(defined)), deviation=deviation)


def pair_cosines(
    encoders: Mapping[RunRecord, Callable[[], Encode]], sets: Sequence[ScoredPairs]
) -> dict[RunRecord, Cosines]:
    """Return the cosines of all test pairs for every run, with one model in memory at a time."""
    texts = list(dict.fromkeys(text for each in sets for text in (*each.sentence1, *each.sentence2)))
    cosines = {}
    for run, load in encoders.items():
        embeddings = TextEmbeddings(texts, np.asarray(load()(texts)))
        cosines[run] = [paired_cosine(embeddings(each.sentence1), embeddings(each.sentence2)) for each in sets]
    return cosines


def compare_groups(
    groups: Sequence[Group],
    *,
    sets: Sequence[ScoredPairs] = (),
    cosines: Mapping[RunRecord, Cosines] | None = None,
    resamples: int = 1000,
) -> Comparison:
    """Compare groups of runs with the first group.

    Args:
        groups: Groups, the baseline first.
        sets: Test sets on which the models were evaluated again.
        cosines: Cosines of every run on `sets` (`pair_cosines`); scores are then computed from these, and a bootstrap
            over pairs is possible.
        resamples: Number of bootstrap samples.

    Raises:
        OpencseError: There is no group, or no score that all runs have.
    """
    if not groups:
        raise OpencseError("there is no run to compare", "Name run folders.")
    if cosines is None:
        suite, scores = _written_scores([run for group in groups for run in group.runs])
    else:
        suite = "sts" if {each.name for each in sets} >= {"STS12", "STS-B"} else "pairs"
        scores = {run: _scores_of_pairs(sets, values) for run, values in cosines.items()}
    tasks = list(next(iter(scores.values())))
    averages = [[spread([*scores[run].values()]).mean for run in group.runs] for group in groups]
    first = spread(averages[0]).mean
    rows = []
    for group, found in zip(groups, averages, strict=True):
        average, interval, difference = spread(found), None, None
        if group is not groups[0]:
            if cosines is not None:
                ours, theirs = ([cosines[run] for run in each.runs] for each in (group, groups[0]))
                interval = paired_bootstrap([each.gold for each in sets], ours, theirs, resamples=resamples)
            if average.mean is not None and first is not None:
                difference = average.mean - first
        untouched = [run.before.get(suite, {}) for run in group.runs]
        rows.append(
            GroupRow(
                label=group.label,
                seeds=tuple(run.seed for run in group.runs),
                tasks={task: spread([scores[run][task] for run in group.runs]) for task in tasks},
                average=average,
                before=_shared([spread([each.get(task) for task in tasks]).mean for each in untouched]),
                difference=difference,
                interval=interval,
                seconds=spread([run.seconds for run in group.runs]),
                steps=_shared([run.steps for run in group.runs]),
            )
        )
    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if cosines is None:
        notes.append("Without --data there are no pairs to resample: the scores are those of each run's results.json.")
    else:
        notes.append("Interval: 95 %, paired bootstrap of the test pairs; it covers new test pairs for these models.")
    if any(len(group.runs) == 1 for group in groups):
        notes.append(
            "A group with one seed has no standard deviation: its difference may be chance (train with more seeds)."
        )
    notes += [note for group in groups for note in group.notes]
    return Comparison(suite=suite, rows=tuple(rows), notes=tuple(notes))


def paired_bootstrap(
    golds: Sequence[np.ndarray],
    systems: Sequence[Sequence[np.ndarray]],
    baselines: Sequence[Sequence[np.ndarray]],
    *,
    resamples: int = 1000,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the difference of average Spearman (times 100) between two groups of models.

    It estimates the effect of the test sets: the results of the same models on other pairs of the same kind. All models
    see the same resamples; the score of a group is the mean over its models.

    Args:
        golds: Gold scores of each test set, of shape (pairs,).
        systems: For each model of the group, its cosines on each test set.
        baselines: The same for the baseline group.
        resamples: Number of bootstrap samples.

    Returns:
        Its ends; None if most resamples have no correlation.
    """
    rng = np.random.default_rng(0)
    differences = np.zeros(resamples)
    for task, gold in enumerate(golds):
        n = len(gold)
        for i in range(resamples):
            rows = np.repeat(np.arange(n), rng.multinomial(n, np.full(n, 1 / n)))
            ours, theirs = (
                np.array([spearman(gold[rows], model[task][rows]) for model in group], dtype=float).mean()
                for group in (systems, baselines)
            )
            differences[i] += 100 * (ours - theirs) / len(golds)
    differences = differences[np.isfinite(differences)]
    if len(differences) < resamples / 2:
        return None
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def _shared(values: Sequence[Any]) -> Any:
    """Return the value that all runs have; None if they differ."""
    return values[0] if len(set(values)) == 1 else None


def _scores_of_pairs(sets: Sequence[ScoredPairs], cosines: Cosines) -> dict[str, float | None]:
    values = {each.name: spearman(each.gold, cosine) for each, cosine in zip(sets, cosines, strict=True)}
    return {name: None if value is None else 100 * value for name, value in values.items()}


def _written_scores(runs: Sequence[RunRecord]) -> tuple[str, RunScores]:
    """Return the suite of results.json that is compared, `sts` or else the first that all runs have, and its scores."""
    shared = [suite for suite in runs[0].after if all(suite in run.after for run in runs)]
    if not shared:
        without = next((run for run in runs if not run.after), runs[-1])
        raise OpencseError(
            f"{without.folder}: holds no scores that all runs have",
            "Pass --data or --pairs, so that the models are evaluated now.",
        )
    suite = "sts" if "sts" in shared else shared[0]
    scores = {run: run.after[suite] for run in runs}
    for run, found in scores.items():
        if set(found) != set(scores[runs[0]]):
            raise OpencseError(
                f"{run.folder}: scored on {', '.join(found)}, but {runs[0].folder} on {', '.join(scores[runs[0]])}",
                "Pass --data or --pairs, so that all are evaluated on the same.",
            )
    return suite, scores
