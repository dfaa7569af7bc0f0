"""`opencse.compare`: runs side by side, over their seeds."""

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
from opencse.evaluation import PairsTask, evaluate_tasks, load_sts, read_pairs
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Cell, Number, Table, show

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
        seconds: Training time in seconds, over seeds.
    """

    label: str
    seeds: tuple[int, ...]
    tasks: Mapping[str, Spread]
    average: Spread
    difference: float | None
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
            gain: Cell = "" if row.difference is None else Number(row.difference, signed=True)
            scores = [*row.tasks.values(), *[row.average] * (len(tasks) > 1)]
            seeds, seconds = " ".join(map(str, row.seeds)), Number(row.seconds.mean, 0)
            rows.append([row.label, seeds, *(each.number() for each in scores), gain, seconds])
        heads = ["run", "seeds", *tasks, *["average"] * (len(tasks) > 1), "against the first", "seconds"]
        return Table(heads, rows, notes=self.notes)


@takes(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compare groups of runs.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline, and training times; it displays as a
        table in a notebook.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs(options.runs)])
    sets = [read_pairs(path) for path in options.pairs]
    if not sets and options.data is not None:
        sets = load_sts(str(options.data))
    tasks = [PairsTask(pairs=each) for each in sets]
    scores = {run: _measured(run, tasks) for runs in groups.values() for run in runs} if tasks else None
    comparison = compare_groups(groups, scores)
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


def compare_groups(groups: Mapping[str, Sequence[RunRecord]], scores: Scores | None = None) -> Comparison:
    """Compare groups of runs with the first group.

    Args:
        groups: Runs that differ only in their seed, by a label, the baseline first (`group_runs`).
        scores: The scores of each run; by default those that the runs wrote.

    Raises:
        OpencseError: There is no score that all runs have.
    """
    scores = scores or _written_scores([run for runs in groups.values() for run in runs])
    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if any(len(runs) == 1 for runs in groups.values()):
        notes.append(
            "A group with one seed has no standard deviation: its difference may be chance (train with more seeds)."
        )
    rows: list[GroupRow] = []
    for label, runs in groups.items():
        found = [scores[run] for run in runs]
        average, difference = spread([spread([*each.values()]).mean for each in found]), None
        if rows and average.mean is not None and rows[0].average.mean is not None:
            difference = average.mean - rows[0].average.mean
        rows.append(
            GroupRow(
                label=label,
                seeds=tuple(run.seed for run in runs),
                tasks={task: spread([each[task] for each in found]) for task in found[0]},
                average=average,
                difference=difference,
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


def _measured(run: RunRecord, tasks: Sequence[PairsTask]) -> Mapping[str, float | None]:
    """Return the scores of a run's model."""
    encoder = Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")
    return {result.task: result.score for result in evaluate_tasks(encoder, tasks).results}


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
