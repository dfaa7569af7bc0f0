"""`opencse.reproduce`: a table or figure of a paper from one command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opencse.commands.command_line import apply, takes
from opencse.commands.evaluate import evaluate
from opencse.commands.options import ReproduceOptions
from opencse.commands.run import run
from opencse.evaluation.probes import ProbeScores, load_probe_data
from opencse.evaluation.task import TaskResult
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import Table, show
from opencse.foundation.terminal import print_text
from opencse.foundation.toml_tables import unknown_name_error
from opencse.papers.entries import Entry, entry_names, load_entry
from opencse.papers.reproduction import reproduce_entry, reproduce_splits
from opencse.papers.runs import MeasuredModel, Reproduction, Start, TrainingRequest
from opencse.papers.table import ReproducedTable
from opencse.text.corpus import Corpus
from opencse.text.memory_tables import data_file
from opencse.training.run_groups import parse_seeds

FULL = {
    "bert-base": "bert-base-uncased",
    "bert-large": "bert-large-uncased",
    "roberta-base": "roberta-base",
    "roberta-large": "roberta-large",
}
"""The backbones of the papers, by family."""
SMALL = "mini-mlm"
"""The backbone of a small run, which stands for the first family of a table."""
SMALL_SETTINGS = (
    "training.epochs=1",
    "training.max_steps=200",
    "training.batch_size=64",
    "selection.every=50",
)
"""Settings of a small run; a setting in which the compared systems differ must not be among them."""


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> ReproducedTable:
    """Reproduce a table.

    Returns:
        The table; an empty cell gives the reason.

    Raises:
        OpencseError: There is no such table or family, the data or the corpus cannot be read, or
            there is no corpus for `full`.
    """
    if options.table is None:
        raise OpencseError("no table is named", "`opencse reproduce` lists them.")
    entry = load_entry(options.table)
    if entry.kind == "splits" and not entry.systems:
        return reproduce_splits(entry, options.data, Path(options.out))
    starts = backbones(entry, options)
    check_corpus(entry, starts, options)
    shared = shared_settings(entry, options)

    def score_task(model: MeasuredModel, task: str) -> TaskResult:
        pooling = model.pooling or None
        scored = evaluate(model.model, data=options.data, tasks=[task], pooling=pooling)
        (suite,) = scored.results.values()
        (result,) = suite.results
        return result

    return reproduce_entry(shared, starts, score_task)


def command(options: ReproduceOptions) -> None:
    """Reproduce a table and print it, or list the tables."""
    if options.table is None:
        show(Table(("table", "title"), [(name, load_entry(name).title) for name in entry_names()]))
        return
    seeds = None if options.seeds is None else parse_seeds(options.seeds)
    table = apply(reproduce, replace(options, seeds=seeds))
    print_text(table.markdown(), end="")


def shared_settings(entry: Entry, options: ReproduceOptions) -> Reproduction:
    """Return what all runs of a reproduction share."""
    full = options.scale == "full"
    overrides = tuple(options.overrides)
    if not full:
        overrides = (*SMALL_SETTINGS, *overrides)
    pairs = [] if options.data is not None else ["demo"]
    probe_data = load_probe_data(data=options.data, pairs=pairs, sentences=options.sentences)

    def train(training: TrainingRequest) -> ProbeScores:
        # Without STS data, the written pairs choose the step and are scored.
        written = None if options.data is not None else "demo"
        result = run(
            training.recipe,
            training.corpus.path,
            backbone=training.backbone,
            out=training.folder,
            data=options.data,
            dev=written,
            pairs=written,
            paraphrases=training.paraphrases,
            resume=training.resume,
            progress=options.progress,
            notify=options.notify,
        )
        return result.trained

    return Reproduction(
        entry=entry,
        out=Path(options.out),
        scale=options.scale,
        overrides=overrides,
        variant=options.variant or ("faithful" if full else "sound"),
        seeds=chosen_seeds(entry, options),
        corpus=Corpus(data_file(options.corpus)),
        triplets=None if options.triplets is None else Corpus(data_file(options.triplets)),
        paraphrases=None if options.paraphrases is None else data_file(options.paraphrases),
        word_vectors=None if options.word_vectors is None else Path(options.word_vectors),
        data=options.data,
        probe_data=probe_data,
        train=train,
        notify=options.notify,
    )


def chosen_seeds(entry: Entry, options: ReproduceOptions) -> Sequence[int | None]:
    """Return the seeds of each system: 1 for a small run, as many as in the paper for a full one."""
    if options.seeds:
        seeds: Sequence[int | None] = options.seeds
        return seeds
    if options.scale == "small":
        return [1]
    if entry.seeds == 1:
        return [None]
    return range(1, entry.seeds + 1)


def check_corpus(entry: Entry, starts: Sequence[Start], options: ReproduceOptions) -> None:
    """Refuse to train on the sample sentences with the settings of a paper.

    Raises:
        OpencseError: A row would be trained on them.
    """
    is_demo = isinstance(options.corpus, str) and options.corpus == "demo"
    if options.scale != "full" or not is_demo:
        return
    for start in starts:
        for system in entry.systems_of(start.family):
            if system.recipe and start.family not in system.model:
                raise OpencseError(
                    "--scale full does not train on the sample sentences", "Pass --corpus."
                )


def backbones(entry: Entry, options: ReproduceOptions) -> list[Start]:
    """Return the backbones of a reproduction, one for each family."""
    given = {}
    for text in options.backbone:
        family, _, path = text.partition("=")
        given[family] = path
    named = list(given)
    if options.family is not None:
        named.append(options.family)
    for family in named:
        if family not in entry.families:
            raise unknown_name_error("family", family, entry.families, entry.name)
    for family, path in given.items():
        if not path:
            raise OpencseError(
                f"--backbone {family}: which model?", f"Write --backbone {family}=PATH."
            )
    if options.scale == "full":
        families = entry.families if options.family is None else (options.family,)
        return [Start(given.get(family, FULL[family]), family, family) for family in families]
    if options.family:
        families = (options.family,)
    else:
        families = tuple(given) or entry.families[:1]
    # Whoever names a family or a backbone gets the published settings; else a small run has the
    # settings of its backbone.
    published = bool(options.family or given)
    return [
        Start(given.get(family, SMALL), family, family if published else "") for family in families
    ]
