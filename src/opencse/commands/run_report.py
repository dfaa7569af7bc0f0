"""The end of a run: both models are probed, and the report and the scores on the model card are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opencse.commands.before_after import measure_stored_vectors, probe_before_and_after
from opencse.commands.display import training_line
from opencse.commands.inputs import RunInputs
from opencse.commands.reports import add_scores, write_report
from opencse.commands.reports.outcome import Outcome, compare_outcome
from opencse.evaluation.compatibility import compared_texts
from opencse.evaluation.probes import ProbeData, ProbeScores
from opencse.foundation.progress import timed
from opencse.training.train import TrainingRun

_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)


def measure_and_report(
    inputs: RunInputs, trained: TrainingRun, probe_data: ProbeData, remarks: Sequence[str]
) -> tuple[dict[str, ProbeScores], Outcome, Path]:
    """Probe both models, and write the report and the scores on the model card."""
    with timed("evaluation"):
        scores = probe_before_and_after(trained.recipe, inputs.backbone, trained.model, probe_data)
        texts = compared_texts(inputs.corpus.texts())
        stored = measure_stored_vectors(inputs.recipe, inputs.backbone, trained.model, texts)
    with timed("report"):
        outcome = compare_outcome(scores, trained.outcome.guards, [*_unmeasured(trained, scores), stored.advice()])
        notes = [*remarks, *_training_notes(trained), *probe_data.notes]
        report = write_report(scores, trained.folder, notes=notes, outcome=outcome)
    table = inputs.paraphrases.table
    made_of = [inputs.corpus.name, *([] if table is None else [f"paraphrases from {table.name}"])]
    add_scores(trained.model / "README.md", scores, made_of=", ".join(made_of), stored=stored)
    return scores, outcome, report


def _unmeasured(trained: TrainingRun, scores: Mapping[str, ProbeScores]) -> Iterator[str]:
    """Yield a line for each missing measurement, with the option that adds it."""
    if not trained.outcome.guards and trained.outcome.first_score is None:
        yield _UNGUARDED
    if not any(found.sts for found in scores.values()):
        yield "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."


def _training_notes(trained: TrainingRun) -> Iterator[str]:
    """Yield the steps and the score of the kept weights, warnings, scores of the guards, and the published average."""
    yield f"Training: {training_line(trained)}."
    yield from trained.warnings
    guards = trained.outcome.guards.items()
    if guards:
        scores = (f"{name.removeprefix('guard-')} {before:.1f} → {after:.1f}" for name, (before, after) in guards)
        yield f"Guards, before → after: {', '.join(scores)}."
    published = trained.recipe.published.get(trained.recipe.family)
    if published is not None:
        yield f"Published STS average for {trained.recipe.family}: {published:.2f} (one run of the authors')."
