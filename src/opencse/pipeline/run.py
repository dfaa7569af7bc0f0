"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin

from opencse.data.label_rows import labels_note
from opencse.data.prepare import prepare_rows
from opencse.evaluation import STS_TASKS, Results, ScoredPairs, TaskResult
from opencse.evaluation.development import development_scorer, development_sets
from opencse.io.corpus import Corpus
from opencse.io.files import write_json
from opencse.io.lock import locks
from opencse.pipeline.before_after import measure_stored_vectors, probe_before_and_after, read_probe_data
from opencse.pipeline.display import answer_lines, probe_tables, run_lines, scores_tables
from opencse.pipeline.inputs import RunInputs, resolve_inputs, with_precision
from opencse.pipeline.time_budget import TimeBudget, announce, begun_budget, fit_to_minutes, run_sizes
from opencse.pipeline.time_estimate import RunSizes
from opencse.pipeline.train import guards, train_on_rows
from opencse.probing import ProbeData, ProbeScores
from opencse.progress import collect, timed
from opencse.recipes import Recipe
from opencse.reports.outcome import Outcome, compare_outcome
from opencse.runs.folder import check_folder
from opencse.runs.loop import TrainingOutcome
from opencse.runs.precision import begun_precision
from opencse.runs.session import Notify
from opencse.training import TrainingRun, train_first_stages

_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)


@dataclass(frozen=True, repr=False)
class RunResult(JupyterMixin):
    """Result of `opencse.run`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        scores: Probe and task scores of the untouched backbone (pooled as in the recipe) and of the trained model, by
            their names in the report.
        outcome: What training changed.
        report: The HTML report.
        timings: Seconds of each part of the command, the longest first.
    """

    run: TrainingRun
    scores: dict[str, ProbeScores]
    outcome: Outcome
    report: Path
    timings: dict[str, float]

    def __repr__(self) -> str:
        return f"RunResult(model={str(self.run.model)!r}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        scores = scores_tables(self.before, self.after, self.run)
        return Group(run_lines(self.run), scores, probe_tables(self.scores), answer_lines(self.outcome, self.report))

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`)."""
        return _suites(next(iter(self.scores.values())))

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(list(self.scores.values())[-1])


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
        sets = development_sets(dev, data, inputs.recipe.selection.tasks)
        sizes = run_sizes(inputs, probe_data, sets, guards(inputs.recipe, guard, inputs.corpus))
        inputs, budget = _announced(inputs, *sizes, minutes, folder if resume else None, notify, confirm)
        notify(precision_line)
        stages = _first_stages(inputs, folder, development_sets(dev, data), progress, overwrite, notify)
        rows = prepare_rows(
            inputs.recipe,
            inputs.corpus,
            folder,
            models={"backbone": inputs.backbone, **stages},
            paraphrases=inputs.paraphrases,
            labels=inputs.labels,
            keep=resume or not overwrite,
            notify=notify,
        )
        remarks = _remarks(inputs, rows, notify)
        trained = train_on_rows(
            inputs.recipe,
            rows,
            backbone=inputs.backbone,
            out=folder,
            dev=dev,
            data=data,
            guard=guard,
            resume=resume_training,
            overwrite=overwrite,
            track=track,
            progress=progress,
            notify=notify,
            corpus_name=inputs.corpus.name,
            documents=inputs.corpus,
            record={"budget": asdict(budget)},
        )
        scores, outcome, report = _measure_and_report(inputs, trained, probe_data, remarks)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    scored = {"before": _plain(result.before), "after": _plain(result.after), "timings": result.timings}
    write_json(folder / "results.json", scored)
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
    """Say what the user's labels add to the rows, if there are any."""
    remarks = [] if inputs.labels is None else [labels_note(inputs.recipe, rows, inputs.labels)]
    for remark in remarks:
        notify(remark)
    return remarks


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


def _measure_and_report(
    inputs: RunInputs, trained: TrainingRun, probe_data: ProbeData, remarks: Sequence[str]
) -> tuple[dict[str, ProbeScores], Outcome, Path]:
    """Probe both models, and write the report and the scores on the model card."""
    from opencse.reports import add_scores, write_report

    with timed("evaluation"):
        scores = probe_before_and_after(trained.recipe, inputs.backbone, trained.model, probe_data)
        stored = measure_stored_vectors(inputs.recipe, inputs.backbone, trained.model, inputs.corpus)
    with timed("report"):
        outcome = compare_outcome(scores, trained.outcome.guards, [*_unmeasured(trained, scores), stored.advice()])
        notes = [*remarks, *trained.warnings, *_guard_note(trained.outcome), *probe_data.notes]
        report = write_report(scores, trained.folder, notes=notes, outcome=outcome)
    table = inputs.paraphrases.table
    made_of = [inputs.corpus.name, *([] if table is None else [f"paraphrases from {table.name}"])]
    add_scores(trained.model / "README.md", scores, made_of=", ".join(made_of), stored=stored)
    return scores, outcome, report


def _unmeasured(trained: TrainingRun, scores: Mapping[str, ProbeScores]) -> Iterator[str]:
    """Yield what the run did not measure, with the option that measures it."""
    if not trained.outcome.guards and trained.outcome.first_score is None:
        yield _UNGUARDED
    if not any(found.sts for found in scores.values()):
        yield "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."


def _guard_note(outcome: TrainingOutcome) -> list[str]:
    """Say what the guards allowed, if there were any."""
    scores = (f"{name} {before:.1f} → {after:.1f}" for name, (before, after) in outcome.guards.items())
    return [f"Guards, before → after: {', '.join(scores)}."] if outcome.guards else []


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    return {name: Results(results=tuple(tasks), texts=0, seconds=scores.seconds) for name, tasks in suites.items()}


def _plain(suites: dict[str, Results]) -> dict[str, Any]:
    return {
        name: {"tasks": [asdict(task) for task in results.results], "average": results.average}
        for name, results in suites.items()
    }
