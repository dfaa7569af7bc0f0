"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opencse.commands.before_after import read_probe_data
from opencse.commands.inputs import RunInputs, resolve_inputs, with_precision
from opencse.commands.run_report import measure_and_report
from opencse.commands.run_result import RunResult
from opencse.commands.train import train_on_rows
from opencse.commands.validation import read_validation
from opencse.evaluation import ScoredPairs
from opencse.evaluation.development import development_scorer, development_sets
from opencse.foundation.lock import locks
from opencse.foundation.numbers import check_minutes
from opencse.foundation.progress import Notify, collect, timed
from opencse.recipes import Recipe
from opencse.recipes.rows.label_rows import labels_note
from opencse.recipes.rows.prepare import prepare_rows
from opencse.text.corpus import Corpus
from opencse.training import train_first_stages
from opencse.training.folder import check_folder
from opencse.training.settled_precision import begun_precision


@locks("out")
def run(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any = "minilm",
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    guard: str | Path | None = None,
    pairs: str | Path | None = None,
    paraphrases: str | Path | None = None,
    llm: str | None = None,
    column: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int | None = None,
    quick: bool = False,
    labels: str | Path | None = None,
    label_share: float = 0.1,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    notify: Notify = lambda _: None,
) -> RunResult:
    """Build the text columns of a recipe, train, and evaluate the model before and after.

    Args:
        recipe: As for `train`.
        corpus: As for `train`.
        backbone: As for `train`.
        out: As for `train`; `views/` (if columns were built), `results.json` and `report.html` are written there too.
        dev: As for `train`.
        data: As for `train`; if given, the seven STS tasks are evaluated.
        guard: As for `train`.
        pairs: Further scored pairs to evaluate on: a file, or `"demo"`.
        paraphrases: A table of sentences and paraphrases, for recipes that use one; its sentences are added to the
            corpus.
        llm: An OpenAI-compatible endpoint and the name of a model there, `URL#MODEL`, that writes paraphrases in place
            of a table.
        column: As for `train`.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        seed: As for `train`.
        quick: Run a short trial of a few steps on a few sentences (`opencse.recipes.shortened`).
        labels: Your own labels to train on (`opencse.recipes.rows.labels.read_labels`): pairs that say the same or the
            opposite, or judged searches.
        label_share: Share of the training rows that the labels make up.
        minutes: Time from now to the end of training; evaluation and report follow. The steps that fit are computed
            once, after the first twenty; a run that is resumed keeps their number. Views are built in full.
        resume: Continue an interrupted run in `out`.
        overwrite: As for `train`.
        track: As for `train`.
        progress: As for `train`.
        notify: As for `train`.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    deadline = None
    if minutes is not None:
        check_minutes(minutes)
        deadline = time.perf_counter() + 60 * minutes
    folder, resume_training = Path(out), resume and (Path(out) / "run.json").is_file()
    with collect() as timings:
        inputs = resolve_inputs(
            recipe,
            corpus,
            backbone=backbone,
            paraphrases=paraphrases,
            llm=llm,
            column=column,
            variant=variant,
            overrides=overrides,
            seed=seed,
            quick=quick,
            labels=labels,
            label_share=label_share,
        )
        # Read before any training, so that a mistake in a path costs nothing.
        probe_data = read_probe_data(data, pairs)
        if not resume:
            check_folder(folder, resume=False, overwrite=overwrite)
        inputs, precision_line = with_precision(inputs, begun_precision(folder) if resume else None)
        validation = read_validation(inputs.recipe, inputs.corpus.texts, dev=dev, data=data, guard=guard)
        if language := inputs.language_line():
            notify(language)
        notify(precision_line)
        stages = _first_stages(inputs, folder, development_sets(dev, data), progress, overwrite, notify)
        rows = prepare_rows(
            inputs.recipe,
            inputs.corpus,
            folder,
            models={"backbone": inputs.backbone, **stages},
            paraphrases=inputs.paraphrases,
            pack=inputs.language.pack,
            labels=inputs.labels,
            keep=resume or not overwrite,
            notify=notify,
        )
        remarks = _remarks(inputs, rows, notify)
        trained = train_on_rows(
            inputs.recipe,
            rows,
            validation,
            backbone=inputs.backbone,
            out=folder,
            resume=resume_training,
            overwrite=overwrite,
            track=track,
            progress=progress,
            notify=notify,
            corpus_name=inputs.corpus.name,
            deadline=deadline,
        )
        scores, outcome, report = measure_and_report(inputs, trained, probe_data, remarks)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def _remarks(inputs: RunInputs, rows: Corpus, notify: Notify) -> list[str]:
    """Notify the user of the share of labels in the rows; return the note for the report."""
    if inputs.labels is None:
        return []
    remark = labels_note(inputs.recipe, inputs.labels, rows.rows(inputs.labels.columns))
    notify(remark)
    return [remark]


def _first_stages(
    inputs: RunInputs,
    folder: Path,
    sets: Sequence[ScoredPairs],
    progress: bool,
    overwrite: bool,
    notify: Notify,
) -> dict[str, Path]:
    """Train the models that build the text columns, such as the unsupervised one that mines."""
    with timed("first stages", whole=True):
        return train_first_stages(
            inputs.recipe,
            inputs.missing_specs,
            inputs.corpus,
            folder,
            backbone=inputs.backbone,
            dev=None if not sets else lambda encoder: development_scorer(encoder, sets),
            progress=progress,
            overwrite=overwrite,
            notify=notify,
        )
