"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opencse.data.label_rows import labels_note
from opencse.data.prepare import prepare_rows
from opencse.evaluation import ScoredPairs
from opencse.evaluation.development import development_scorer, development_sets
from opencse.io.corpus import Corpus
from opencse.io.lock import locks
from opencse.pipeline.before_after import read_probe_data
from opencse.pipeline.inputs import RunInputs, resolve_inputs, with_precision
from opencse.pipeline.run_report import measure_and_report
from opencse.pipeline.run_result import RunResult
from opencse.pipeline.time_budget import TimeBudget, announce, begun_budget, fit_to_minutes, run_sizes
from opencse.pipeline.time_estimate import RunSizes
from opencse.pipeline.train import train_on_rows
from opencse.pipeline.validation import read_validation
from opencse.progress import Notify, collect, timed
from opencse.recipes import Recipe
from opencse.runs.folder import check_folder
from opencse.runs.settled_precision import begun_precision
from opencse.training import train_first_stages


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
    confirm: Callable[[str], bool] | None = None,
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
        labels: Your own labels to train on (`opencse.data.labels.read_labels`): pairs that say the same or the
            opposite, or judged searches.
        label_share: Share of the training rows that the labels make up.
        minutes: Time that the run may take. As much of the recipe is used as is expected to fit, by a probe of the
            machine; a run that is resumed keeps its share.
        resume: Continue an interrupted run in `out`.
        overwrite: As for `train`.
        track: As for `train`.
        progress: As for `train`.
        notify: As for `train`.
        confirm: Receives the first line, with size and expected time, and returns whether to begin; by default the run
            begins.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
        Interrupted: `confirm` returned False.
    """
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
        sizes = run_sizes(inputs, probe_data, validation)
        inputs, budget = _announced(inputs, *sizes, minutes, folder if resume else None, notify, confirm)
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
            record={"budget": asdict(budget)},
        )
        scores, outcome, report = measure_and_report(inputs, trained, probe_data, remarks)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def _announced(
    inputs: RunInputs,
    sizes: RunSizes,
    first: Sequence[str],
    minutes: float | None,
    resumed: Path | None,
    notify: Notify,
    confirm: Callable[[str], bool] | None,
) -> tuple[RunInputs, TimeBudget]:
    """Fit the recipe to the minutes, or to the share that a resumed run began with; say how long it takes."""
    begun = None if resumed is None else begun_budget(resumed)
    with timed("probe of the machine"):
        inputs, budget = fit_to_minutes(inputs, sizes, first, minutes, begun)
    announce(budget.line(sizes.sentences, inputs.recipe.name), notify, confirm)
    if language := inputs.language_line():
        notify(language)
    return inputs, budget


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
