"""`opencse.compare`: runs side by side, over their seeds and over test pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.commands.command_line import apply, takes
from opencse.commands.compare_search import compare_search
from opencse.commands.options import CompareCommand, CompareOptions
from opencse.commands.run_groups import RunRecord, find_runs, group_runs, read_run
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, ScoredPairs, TextEmbeddings, distinct_texts, load_sts, read_pairs
from opencse.evaluation.sts import paired_cosine, spearman
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Cell, Number, Table, show

_RESAMPLES = 1000
Groups = Mapping[str, Sequence[RunRecord]]
Cosines = Mapping[RunRecord, Sequence[np.ndarray]]
"""The cosines of each run on each set of pairs."""
Scores = Mapping[RunRecord, Mapping[str, float | None]]


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
        difference: Mean average minus that of the baseline; None for the baseline itself, or if undefined.
        interval: 95 % interval of the difference over test pairs (bootstrap); None without pairs.
        seconds: Training time in seconds, over seeds.
    """

    label: str
    seeds: tuple[int, ...]
    tasks: Mapping[str, Spread]
    average: Spread
    difference: float | None
    interval: tuple[float, float] | None
    seconds: Spread


@dataclass(frozen=True, kw_only=True)
class Comparison(JupyterMixin):
    """All groups, scored on the same tasks; displayed as a table in a terminal (rich) and in a notebook.

    Attributes:
        rows: Results of each group; the first group is the baseline.
        notes: Remarks for the reader.
    """

    rows: tuple[GroupRow, ...]
    notes: tuple[str, ...]

    def __rich__(self) -> RenderableType:
        return self.table()

    def table(self) -> Table:
        """Return a row for each group, with the notes."""
        tasks, rows = list(self.rows[0].tasks), list[list[Cell]]()
        for row in self.rows:
            between = "" if row.interval is None else " to ".join(str(Number(end, signed=True)) for end in row.interval)
            gain: Cell = "" if row.difference is None else Number(row.difference, aside=between, signed=True)
            scores = [*row.tasks.values(), *[row.average] * (len(tasks) > 1)]
            seeds, seconds = " ".join(map(str, row.seeds)), Number(row.seconds.mean, 0)
            rows.append([row.label, seeds, *(each.number() for each in scores), gain, seconds])
        heads = ["run", "seeds", *tasks, *["average"] * (len(tasks) > 1), "against the first", "seconds"]
        return Table(heads, rows, notes=self.notes)


@takes(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compare groups of runs.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline with an interval over pairs (paired
        bootstrap), and training times; it displays as a table in a notebook.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs(options.runs)])
    sets: list[ScoredPairs] = []
    if options.pairs:
        sets = [read_pairs(path) for path in options.pairs]
    elif options.data is not None:
        sets = load_sts(str(options.data))
    comparison = compare_groups(groups, sets, _pair_cosines(groups, sets) if sets else {})
    if options.out is not None:
        write_text(Path(options.out) / "comparison.md", comparison.table().markdown())
        write_json(Path(options.out) / "comparison.json", asdict(comparison))
    return comparison


def command(options: CompareCommand) -> None:
    """Compare runs, or the searches of two models, and print what differs."""
    if options.texts is None:
        if options.queries is not None:
            raise OpencseError("--queries goes with --texts", "Add --texts DOCS.")
        show(apply(compare, options))
        return
    if len(options.runs) != 2:
        raise OpencseError(
            f"--texts compares two models, not {len(options.runs)}",
            "Name the one in use, then the one that may replace it.",
        )
    old, new = options.runs
    show(compare_search(old, new, options.texts, queries=options.queries, column=options.column, out=options.out))
    if options.out is not None:
        typer.echo(f"page: {Path(options.out) / 'search.html'}")


def compare_groups(groups: Groups, sets: Sequence[ScoredPairs] = (), cosines: Cosines | None = None) -> Comparison:
    """Compare groups of runs with the first group.

    Args:
        groups: Runs that differ only in their seed, by a label, the baseline first (`group_runs`).
        sets: Test sets on which the models were evaluated again; without any, the scores that the runs wrote count.
        cosines: Cosines of every run on `sets`.

    Raises:
        OpencseError: There is no score that all runs have.
    """
    scores = (
        _pair_scores(sets, cosines) if cosines else _written_scores([run for runs in groups.values() for run in runs])
    )
    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if cosines:
        notes.append("Interval: 95 %, paired bootstrap of the test pairs; it covers new test pairs for these models.")
    else:
        notes.append("Without --data there are no pairs to resample: the scores are those of each run's results.json.")
    if any(len(runs) == 1 for runs in groups.values()):
        notes.append(
            "A group with one seed has no standard deviation: its difference may be chance (train with more seeds)."
        )
    rows: list[GroupRow] = []
    for label, runs in groups.items():
        found = [scores[run] for run in runs]
        average, interval, difference = spread([spread([*each.values()]).mean for each in found]), None, None
        if rows:
            if average.mean is not None and rows[0].average.mean is not None:
                difference = average.mean - rows[0].average.mean
            if cosines:
                ours, theirs = ([cosines[run] for run in each] for each in (runs, next(iter(groups.values()))))
                interval = paired_bootstrap([each.gold for each in sets], ours, theirs)
        rows.append(
            GroupRow(
                label=label,
                seeds=tuple(run.seed for run in runs),
                tasks={task: spread([each[task] for each in found]) for task in found[0]},
                average=average,
                difference=difference,
                interval=interval,
                seconds=spread([run.seconds for run in runs]),
            )
        )
    return Comparison(rows=tuple(rows), notes=tuple(notes))


def spread(scores: Sequence[float | None]) -> Spread:
    """Return the mean and standard deviation, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Spread(mean=None, deviation=None)
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Spread(mean=float(np.mean(defined)), deviation=deviation)


def paired_bootstrap(
    golds: Sequence[np.ndarray],
    systems: Sequence[Sequence[np.ndarray]],
    baselines: Sequence[Sequence[np.ndarray]],
    *,
    resamples: int = _RESAMPLES,
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


def _pair_cosines(groups: Groups, sets: Sequence[ScoredPairs]) -> Cosines:
    """Return the cosines of all test pairs for every run, with one model in memory at a time."""
    texts, cosines = distinct_texts([PairsTask(pairs=each) for each in sets]), dict[RunRecord, list[np.ndarray]]()
    for run in (run for runs in groups.values() for run in runs):
        encoder = Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")
        embeddings = TextEmbeddings(texts, encoder(texts))
        cosines[run] = [paired_cosine(embeddings(each.sentence1), embeddings(each.sentence2)) for each in sets]
    return cosines


def _pair_scores(sets: Sequence[ScoredPairs], cosines: Cosines) -> Scores:
    scores: dict[RunRecord, dict[str, float | None]] = {}
    for run, found in cosines.items():
        values = {each.name: spearman(each.gold, cosine) for each, cosine in zip(sets, found, strict=True)}
        scores[run] = {name: None if value is None else 100 * value for name, value in values.items()}
    return scores


def _written_scores(runs: Sequence[RunRecord]) -> Scores:
    """Return the scores of results.json on `sts`, or else the first suite that all runs have."""
    shared = [suite for suite in runs[0].scores if all(suite in run.scores for run in runs)]
    if not shared:
        without = next((run for run in runs if not run.scores), runs[-1])
        raise OpencseError(
            f"{without.folder}: holds no scores that all runs have",
            "Pass --data or --pairs, so that the models are evaluated now.",
        )
    scores = {run: run.scores["sts" if "sts" in shared else shared[0]] for run in runs}
    first = scores[runs[0]]
    for run, found in scores.items():
        if set(found) != set(first):
            raise OpencseError(
                f"{run.folder}: scored on {', '.join(found)}, but {runs[0].folder} on {', '.join(first)}",
                "Pass --data or --pairs, so that all are evaluated on the same.",
            )
    return scores
