"""`opencse.compare`: runs side by side, over their seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from opencse.commands.command_line import apply, takes
from opencse.commands.compare_search import compare_search
from opencse.commands.options import CompareCommand, CompareOptions
from opencse.commands.run_groups import RunRecord, find_runs, group_runs, read_run
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import ScoredPairs, evaluate_tasks, load_sts, read_pairs
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Cell, Number, Table, show

Scores = Mapping[RunRecord, Mapping[str, float | None]]


@takes(CompareOptions)
def compare(options: CompareOptions) -> Table:
    """Compare groups of runs.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline, and training times.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs(options.runs)])
    runs = [run for each in groups.values() for run in each]
    sets = [read_pairs(path) for path in options.pairs]
    if not sets and options.data is not None:
        sets = load_sts(str(options.data))
    scores = {run: _measured(run, sets) for run in runs} if sets else written_scores(runs)
    table = compare_groups(groups, scores)
    if options.out is not None:
        write_text(Path(options.out) / "comparison.md", table.markdown())
        single = {
            label: [{"seed": run.seed, "seconds": run.seconds, "scores": scores[run]} for run in each]
            for label, each in groups.items()
        }
        write_json(Path(options.out) / "comparison.json", single)
    return table


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


def compare_groups(groups: Mapping[str, Sequence[RunRecord]], scores: Scores) -> Table:
    """Compare groups of runs with the first group.

    Args:
        groups: Runs that differ only in their seed, by a label, the baseline first (`group_runs`).
        scores: The scores of each run, by the same tasks.
    """
    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if any(len(runs) == 1 for runs in groups.values()):
        notes.append(
            "A group with one seed has no standard deviation: its difference may be chance (train with more seeds)."
        )
    names, rows, first = list(next(iter(scores.values()))), list[list[Cell]](), None
    for label, runs in groups.items():
        found = [[scores[run][name] for name in names] for run in runs]
        average, gain = spread([spread(each).value for each in found]), Number(None)
        if first is not None and first.value is not None and average.value is not None:
            gain = Number(average.value - first.value, signed=True)
        columns = [*map(spread, zip(*found, strict=True)), *[average] * (len(names) > 1)]
        seconds = Number(statistics.fmean(run.seconds for run in runs), 0)
        rows.append([label, " ".join(str(run.seed) for run in runs), *columns, "" if first is None else gain, seconds])
        first = first or average
    heads = ["run", "seeds", *names, *["average"] * (len(names) > 1), "against the first", "seconds"]
    return Table(heads, rows, notes=notes)


def spread(scores: Sequence[float | None]) -> Number:
    """Return mean and sample standard deviation for a cell of a table, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if len(defined) < len(scores):
        return Number(None)
    if len(defined) == 1:
        return Number(defined[0], aside="n = 1")
    return Number(statistics.fmean(defined), deviation=statistics.stdev(defined))


def _measured(run: RunRecord, tasks: Sequence[ScoredPairs]) -> Mapping[str, float | None]:
    """Return the scores of a run's model."""
    encoder = Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")
    return {result.task: result.score for result in evaluate_tasks(encoder, tasks).results}


def written_scores(runs: Sequence[RunRecord]) -> Scores:
    """Return the scores of results.json on `sts`, or else the first suite that all runs have.

    Raises:
        OpencseError: There is no score that all runs have.
    """
    suite = next((name for name in ("sts", *runs[0].scores) if all(name in run.scores for run in runs)), None)
    if suite is None:
        without = next((run for run in runs if not run.scores), runs[-1])
        raise OpencseError(
            f"{without.folder}: holds no scores that all runs have",
            "Pass --data or --pairs, so that the models are evaluated now.",
        )
    scores, first = {run: run.scores[suite] for run in runs}, runs[0]
    if other := next((run for run in runs if {*scores[run]} != {*scores[first]}), None):
        raise OpencseError(
            f"{other.folder}: scored on {', '.join(scores[other])}, but {first.folder} on {', '.join(scores[first])}",
            "Pass --data or --pairs, so that all are evaluated on the same.",
        )
    return scores
