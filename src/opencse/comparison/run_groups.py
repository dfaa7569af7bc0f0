"""Run folders as records, and records as groups that differ in nothing but the seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.io.reading import json_object, read_json, read_text
from opencse.io.tables import read_lines
from opencse.settings.tables import parse_toml

_REMEDY = "Leave the run out."
Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunRecord:
    """A finished run.

    Attributes:
        folder: Where it is.
        recipe: Its name.
        variant: `sound` or `faithful`.
        family: Family of the backbone.
        backbone: As it was named.
        seed: Its seed.
        settings: The resolved recipe as a flat table, without seed and remarks.
        corpus: Hash of the corpus.
        weights: Hash of the backbone.
        rows: Sentences trained on.
        steps: Optimiser steps.
        seconds: Training time.
        dev: Development score of the step that was kept, if there was one.
        published: Published score of this recipe for the family, if there is one.
        before: Scores of the untouched backbone by suite and task; None for undefined ones.
        after: Scores of the trained model.
        curve: Development scores by step.
        losses: Losses by step.
    """

    folder: Path
    recipe: str
    variant: str
    family: str
    backbone: str
    seed: int
    settings: Mapping[str, Any]
    corpus: str
    weights: str
    rows: int
    steps: int
    seconds: float
    dev: float | None
    published: float | None
    before: Mapping[str, Mapping[str, float | None]]
    after: Mapping[str, Mapping[str, float | None]]
    curve: Curve
    losses: Curve


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs that differ in their seed alone.

    Attributes:
        label: Recipe, variant and backbone, and what else tells it from other groups of that name.
        runs: In order of their seeds.
        notes: What a reader should know.
    """

    label: str
    runs: tuple[RunRecord, ...]
    notes: tuple[str, ...] = field(default=())


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """Return run folders; a folder that is none, but holds some, stands for these.

    Raises:
        OpencseError: A path is no folder, or holds no run.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            raise OpencseError(f"{path}: no such folder", "Name folders that `opencse train` or `run` wrote.")
        inside = [path] if (path / "run.json").is_file() else sorted(p.parent for p in path.glob("*/run.json"))
        if not inside:
            raise OpencseError(f"{path}: holds no run", "Name folders that `opencse train` or `run` wrote.")
        found += inside
    return list(dict.fromkeys(path.resolve() for path in found))


def read_run(folder: str | Path) -> RunRecord:
    """Read a run folder.

    Raises:
        OpencseError: A file is missing or damaged, or the run did not finish.
    """
    folder = Path(folder)
    record = read_json(folder / "run.json", _REMEDY)
    outcome = record.get("outcome")
    if not isinstance(outcome, dict):
        raise OpencseError(f"{folder}: this run is not finished", "Finish it with --resume, or leave it out.")
    recipe = parse_toml(read_text(folder / "recipe.toml", _REMEDY), str(folder / "recipe.toml"))
    results = read_json(folder / "results.json", _REMEDY) if (folder / "results.json").is_file() else {}
    curves = list(_metrics(folder / "metrics.jsonl"))
    try:
        return RunRecord(
            folder=folder,
            recipe=str(record["recipe"]),
            variant=str(record["variant"]),
            family=str(record["family"]),
            backbone=str(record["backbone"]),
            seed=int(record["seed"]),
            settings=_settings(recipe),
            corpus=str(record["fingerprint"]["corpus"]),
            weights=str(record["fingerprint"]["backbone"]),
            rows=int(record["rows"]),
            steps=int(outcome["steps"]),
            seconds=float(outcome["seconds"]),
            dev=outcome["best_score"],
            published=recipe.get("published", {}).get(record["family"]),
            before=_scores(results.get("before", {})),
            after=_scores(results.get("after", {})),
            curve=tuple((line["step"], line["dev"]) for line in curves if "dev" in line),
            losses=tuple((line["step"], line["loss"]) for line in curves if "loss" in line),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OpencseError(f"{folder}: not as a run writes it ({error!r})", "Leave the run out.") from None


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Put runs together that differ in nothing but the seed, in order of first occurrence.

    A seed that occurs twice is no second measurement: only its first run is taken, and a note says so.
    """
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        key = [run.recipe, run.variant, run.weights, run.corpus, run.rows, sorted(run.settings.items())]
        members.setdefault(json.dumps(key, default=str), []).append(run)
    groups = list(members.values())
    labels = _labels([group[0] for group in groups])
    return [_group(label, group) for label, group in zip(labels, groups, strict=True)]


def _group(label: str, runs: list[RunRecord]) -> Group:
    seeds: dict[int, RunRecord] = {}
    notes = []
    for run in runs:
        if seeds.setdefault(run.seed, run) is not run:
            notes.append(f"{label}: seed {run.seed} occurs again in {run.folder}, and is counted once")
    return Group(label=label, runs=tuple(seeds[seed] for seed in sorted(seeds)), notes=tuple(notes))


def _labels(firsts: list[RunRecord]) -> list[str]:
    """Names that tell the groups apart, with the settings in which those of one name differ."""
    plain = [_plain_label(run) for run in firsts]
    labels = []
    for run, name in zip(firsts, plain, strict=True):
        rivals = [other for other, theirs in zip(firsts, plain, strict=True) if theirs == name]
        details = []
        for key in sorted({key for rival in rivals for key in rival.settings}):
            values = [rival.settings.get(key) for rival in rivals]
            if any(value != values[0] for value in values):
                details.append(f"{key}={run.settings.get(key)}")
        if len({(rival.corpus, rival.rows) for rival in rivals}) > 1:
            details.append(f"corpus {run.corpus[:6]} of {run.rows:,} rows")
        if len({rival.weights for rival in rivals}) > 1:
            details.append(f"weights {run.weights[:6]}")
        labels.append(", ".join([name, *details]))
    return labels


def _plain_label(run: RunRecord) -> str:
    variant = "" if run.variant == "sound" else f" ({run.variant})"
    return f"{run.recipe}{variant} on {Path(run.backbone).name or run.backbone}"


def _settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that bear on the result, flat, under names like `terms.contrastive.temperature`."""
    ignored = ("title", "paper", "differs", "published", "training.seed", "training.log_every")
    flat = dict(_flat("", recipe))
    return {key: value for key, value in flat.items() if not key.startswith(ignored)}


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, inner)
    elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{prefix}.{inner.get('name', index)}", inner)
    else:
        yield prefix, value


def _scores(suites: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    return {
        suite: {task["task"]: task["metrics"][task["main"]] for task in results["tasks"]}
        for suite, results in suites.items()
    }


def _metrics(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    for number, line in read_lines(path):
        if line.strip():
            yield json_object(line, f"{path}, line {number}", "Remove the line, or the file.")
