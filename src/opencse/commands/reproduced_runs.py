"""The runs of a reproduction: trained or found on disk, and measured as a table or figure asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opencse.commands.evaluate import evaluate
from opencse.commands.reports.curves import Curve
from opencse.commands.reproduced_models import MeasureModel, training_rows
from opencse.commands.reproduction import Entry, System
from opencse.commands.reproduction.details import Detail
from opencse.commands.run import run
from opencse.encoder import backbone_config, load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation.probes import ProbeData, ProbeScores, ProbeSuite
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json
from opencse.recipes import Recipe, dump_recipe, family_of
from opencse.recipes.rows.paraphrases import Paraphrases, paraphrase_columns
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.training.session import Notify

CANDIDATES = {"debcse": "build.positive.source"}
"""The constructor source that takes a table of paraphrases, for recipes without a column of paraphrases."""
WATCHED = {
    **dict.fromkeys(("alignment", "uniformity"), "geometry"),
    **dict.fromkeys(("Cont.", "Oppn."), "splits"),
    **dict.fromkeys(("training alignment", "training uniformity"), "training"),
}
"""The kind of `Selection.watch` behind each column of curves."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Scores of one run by column, or why there are none; curves by column, and what the model itself gave."""

    scores: dict[str, float | str]
    curves: dict[str, Curve] = field(default_factory=dict)
    detail: Detail | None = None


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run on disk: its folder, its usual scores, and its recipe; None for an untouched backbone."""

    folder: Path
    scores: dict[str, float]
    recipe: Recipe | None = None


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Settings of all runs of a reproduction."""

    out: Path
    corpus: Corpus
    data: str | None
    probe_data: ProbeData
    overrides: tuple[str, ...]
    paraphrases: Path | None
    progress: bool
    notify: Notify
    triplets: Corpus | None = None

    def corpus_of(self, recipe: Recipe) -> Corpus:
        """Return the corpus of a recipe: the triplets if they alone have the columns that it reads."""
        columns = set(recipe.columns)
        labelled = self.triplets is not None and columns <= set(self.triplets.columns)
        return self.triplets if self.triplets is not None and labelled and len(columns) > 1 else self.corpus


def measure_system(
    entry: Entry,
    system: System,
    backbone: str,
    seeds: Sequence[int],
    shared: SharedSettings,
    measure_model: MeasureModel | None = None,
) -> list[Measured] | str:
    """Return the measurements of a system for each seed, or the reason why there are none.

    Args:
        entry: The table or figure.
        system: One of its systems.
        backbone: What it is trained from.
        seeds: One for each run.
        shared: Settings of all runs.
        measure_model: What the entry measures on the models themselves, if it does.
    """
    if system.missing:
        return system.missing
    try:
        backbone_config(backbone)
    except OpencseError:
        return f"the backbone {backbone}"
    try:
        if system.pooling:
            key = {"backbone": backbone, "pooling": system.pooling}
            found = [
                StoredRun(**_stored_or_measured(shared, key, lambda _: _probe_untouched(system, backbone, shared)))
            ]
        else:
            found = [_trained(entry, system, backbone, seed, shared) for seed in seeds]
        return [_of_kind(entry, system, backbone, each, shared, measure_model) for each in found]
    except OpencseError as error:
        shared.notify(f"{system.label}: {error}")
        return error.problem


def _of_kind(
    entry: Entry,
    system: System,
    backbone: str,
    found: StoredRun,
    shared: SharedSettings,
    measure_model: MeasureModel | None,
) -> Measured:
    """Return what the entry shows of a run, whose scores of the usual kind are known."""
    folder, recipe = found.folder, found.recipe
    model = backbone if system.pooling else str(folder / "model")
    if measure_model is not None:
        corpus = shared.corpus if recipe is None else shared.corpus_of(recipe)
        detail = measure_model(model, system.pooling, recipe, lambda: training_rows(folder, corpus))
        return Measured(scores=dict(detail.scores()), detail=detail)
    if entry.kind == "tasks":
        return Measured(scores=_task_scores(entry.columns, model, system.pooling, folder, shared.data))
    if entry.kind == "curves" and system.recipe:
        curves = {column: _read_curve(folder / "metrics.jsonl", column) for column in entry.columns}
        return Measured(scores={name: curve[-1][1] for name, curve in curves.items() if curve}, curves=curves)
    return Measured(scores=dict(found.scores))


def _task_scores(
    columns: Sequence[str], model: str, pooling: str, folder: Path, data: str | None
) -> dict[str, float | str]:
    """Return the scores of a model on tasks by column; those measured before are read from a file beside the run."""
    file = folder.with_name(f"{folder.name}-tasks.json")
    known: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    missing: dict[str, str] = {}
    for column in columns:
        task = column.partition(":")[0]
        if column == "Avg." or any(name.partition(":")[0] == task for name in known):
            continue
        try:
            evaluation = evaluate(model, data=data, tasks=[task], pooling=pooling or None)
        except OpencseError as error:
            missing[column] = error.problem
            continue
        (result,) = (each for suite in evaluation.results.values() for each in suite.results)
        metrics = {f"{task}: {name}": value for name, value in result.metrics.items() if value is not None}
        bins = result.details.get("cosines", [])
        metrics |= {f"{task}: cosine {b['from']} to {b['to']}": b["mean"] for b in bins if b["mean"] is not None}
        known |= metrics if result.score is None else metrics | {task: result.score}
        write_json(file, known)
    return {**known, **missing}


def _read_curve(file: Path, name: str) -> Curve:
    """Return a measure by step from the log of a run."""
    lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [(line["step"], line[name]) for line in lines if name in line]


def _probe_untouched(system: System, backbone: str, shared: SharedSettings) -> ProbeScores:
    return ProbeSuite(shared.probe_data)(Embedder(load_encoder(backbone, pooling=system.pooling), precision="auto"))


def _trained(entry: Entry, system: System, backbone: str, seed: int, shared: SharedSettings) -> StoredRun:
    source, source_key = Paraphrases(table=shared.paraphrases), CANDIDATES.get(system.recipe)
    settings = [*system.set, *shared.overrides, f"training.seed={seed}"]
    if entry.kind == "curves":
        settings.append(f"selection.watch={sorted({WATCHED[column] for column in entry.columns})}")
    if shared.paraphrases is not None and source_key is not None:
        text, candidate = paraphrase_columns(shared.paraphrases)
        named = f"text_column='{text}', candidate_column='{candidate}'"
        settings.insert(0, f"{source_key}={{kind='candidate_table', path='{shared.paraphrases.resolve()}', {named}}}")
    family = family_of(backbone_config(backbone))
    options: dict[str, Any] = {"family": family, "overrides": settings}
    try:
        recipe = recipe_for_corpus(system.recipe, shared.corpus.columns, **options, paraphrases=source)
    except OpencseError:
        if shared.paraphrases is None:
            raise
        source = Paraphrases()  # this system uses no paraphrases
        recipe = recipe_for_corpus(system.recipe, shared.corpus.columns, **options, paraphrases=source)
    key = {"recipe": dump_recipe(recipe), "backbone": backbone, "corpus": shared.corpus_of(recipe).content_hash}
    stored = _stored_or_measured(shared, key, lambda folder: _run(recipe, backbone, folder, source, shared))
    return StoredRun(**stored, recipe=recipe)


def _run(recipe: Recipe, backbone: str, folder: Path, source: Paraphrases, shared: SharedSettings) -> ProbeScores:
    shared.notify(f"training {recipe.name}, seed {recipe.training.seed}, in {folder}")
    result = run(
        recipe,
        shared.corpus_of(recipe).path,
        backbone=backbone,
        out=folder,
        data=shared.data,
        dev=None if shared.data is not None else "demo",
        pairs=None if shared.data is not None else "demo",
        paraphrases=source.table,
        resume=(folder / "run.json").is_file(),
        progress=shared.progress,
        notify=shared.notify,
    )
    return list(result.scores.values())[-1]


def _stored_or_measured(shared: SharedSettings, key: Mapping[str, str], measure: Any) -> dict[str, Any]:
    """Return folder and scores of a run; they are measured unless an earlier reproduction stored them."""
    dependencies = {"corpus": shared.corpus.content_hash, **key, "data": shared.data or "written pairs"}
    digest = hashlib.blake2b(json.dumps(dependencies, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = shared.out / "runs" / digest
    file = folder.with_suffix(".json")
    if not file.is_file():
        write_json(file, _by_task(measure(folder)) | {"of": dict(dependencies)})
    stored = json.loads(file.read_text(encoding="utf-8"))
    return {"folder": folder, "scores": {name: score for name, score in stored.items() if name != "of"}}


def _by_task(scores: ProbeScores) -> dict[str, Any]:
    """Return the scores by task, the correlations on OssCSE's splits times 100, and mean cosines by transformation.

    `Cont.` and `Oppn.` are averages, `Cont.: NAME` and `Oppn.: NAME` those of one set.
    """
    by_task = {task.task: task.score for task in scores.sts if task.score is not None}
    if scores.splits is not None:
        splits = {"Cont.": scores.splits.consistent.value, "Oppn.": scores.splits.opposed.value}
        for each in scores.splits.sets:
            splits |= {f"Cont.: {each.name}": each.consistent.value, f"Oppn.: {each.name}": each.opposed.value}
        by_task |= {name: 100 * value for name, value in splits.items() if value is not None}
    if scores.transformations is not None:
        cosines = {f"cosine: {kind.kind}": kind.cosine.value for kind in scores.transformations.kinds}
        by_task |= {name: value for name, value in cosines.items() if value is not None}
    return by_task
