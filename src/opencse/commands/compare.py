"""`opencse.compare`: runs side by side, over their seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import typer

from opencse.commands.command_line import apply, takes
from opencse.commands.compare_search import compare_search
from opencse.commands.comparison.compare_groups import Comparison, compare_groups, pair_cosines
from opencse.commands.comparison.run_groups import RunRecord, find_runs, group_runs, read_run
from opencse.commands.measuring_options import CompareCommand, CompareOptions
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import Encode, ScoredPairs, load_sts, read_pairs
from opencse.evaluation.sts_sources import sts_text
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import show
from opencse.text import demo


@takes(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """Compare groups of runs.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline with an interval over pairs (paired
        bootstrap), and training times; it displays as a table in a notebook.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs([Path(run) for run in options.runs])])
    sets: list[ScoredPairs] = []
    cosines = None
    if options.pairs:
        sets = [read_pairs(demo.pairs(path)) for path in options.pairs]
    elif options.data is not None:
        sets = load_sts(str(options.data), text=sts_text(options.data))
    if sets:
        cosines = pair_cosines({run: _loader(run) for group in groups for run in group.runs}, sets)
    comparison = compare_groups(groups, sets=sets, cosines=cosines, resamples=options.resamples)
    if options.out is not None:
        write_text(Path(options.out) / "comparison.md", comparison.table().markdown())
        write_json(Path(options.out) / "comparison.json", asdict(comparison))
    return comparison


def command(options: CompareCommand) -> None:
    """Compare runs, or the searches of two models, and print what differs."""
    if options.texts is not None:
        _compare_search(options)
        return
    if options.queries is not None:
        raise OpencseError("--queries goes with --texts", "Add --texts DOCS.")
    show(apply(compare, options))


def _compare_search(options: CompareCommand) -> None:
    if len(options.runs) != 2:
        raise OpencseError(
            f"--texts compares two models, not {len(options.runs)}",
            "Name the one in use, then the one that may replace it.",
        )
    old, new = options.runs
    found = compare_search(old, new, options.texts, queries=options.queries, column=options.column, out=options.out)
    show(found)
    if options.out is not None:
        typer.echo(f"page: {Path(options.out) / 'search.html'}")


def _loader(run: RunRecord) -> Callable[[], Encode]:
    """Return a function that loads the model of a run."""
    return lambda: Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")
