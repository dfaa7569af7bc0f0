"""Run folders: one for each seed, read as records, and grouped where they differ only in the seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LARGEST_SEED
from opencse.foundation.reading import read_json, read_text
from opencse.foundation.toml_tables import parse_toml

_REMEDY = "Leave the run out."
_MAX_RUNS = 1000  # that one command starts


@dataclass(frozen=True, kw_only=True, eq=False)
class RunRecord:
    """A finished run.

    Attributes:
        settings: The resolved recipe as a flat table, without seed and descriptions.
        corpus: Hash of the corpus.
        weights: Hash of the backbone.
        before: Scores of the untouched backbone by suite and task; None for undefined ones.
        after: Scores of the trained model.
    """

    folder: Path
    recipe: str
    variant: str
    backbone: str
    seed: int
    settings: Mapping[str, Any]
    corpus: str
    weights: str
    rows: int
    steps: int
    seconds: float
    before: Mapping[str, Mapping[str, float | None]]
    after: Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs that differ only in their seed, in order of their seeds."""

    label: str
    runs: tuple[RunRecord, ...]
    notes: tuple[str, ...] = field(default=())


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a list such as `1,2,3` or `1-5`.

    Raises:
        OpencseError: It is neither, or names a seed twice.
    """
    seeds: list[int] = []
    for part in map(str.strip, text.split(",")):
        first, _, last = part.partition("-")
        if not re.fullmatch(r"[0-9]{1,10}(-[0-9]{1,10})?", part) or int(last or first) > LARGEST_SEED:
            raise OpencseError(f"--seeds {text}: {part!r} is not a seed", "Write them as 1,2,3 or 1-5.")
        chosen = range(int(first), int(last or first) + 1)
        if len(seeds) + len(chosen) > _MAX_RUNS:
            raise OpencseError(f"--seeds {text}: more than {_MAX_RUNS} runs", "Name fewer.")
        seeds += chosen
    if not seeds or len(set(seeds)) < len(seeds):
        raise OpencseError(f"--seeds {text}: names no seed, or one twice", "Write them as 1,2,3 or 1-5.")
    return seeds


def seed_folders(out: str | Path, seeds: Sequence[int]) -> dict[int, Path]:
    """Return the run folder of each seed, `OUT/seed-1` and so on, where `opencse compare OUT` finds them.

    Raises:
        OpencseError: `out` is itself a run.
    """
    out = Path(out)
    if (out / "run.json").is_file():
        raise OpencseError(f"{out}: is itself a run, not a folder of runs", "Choose another output folder.")
    return {seed: out / f"seed-{seed}" for seed in seeds}


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """Return the run folders among the paths and directly inside them.

    Raises:
        OpencseError: A path is not a folder, or contains no run.
    """
    folders: list[Path] = []
    for path in map(Path, paths):
        inside = [path] if (path / "run.json").is_file() else sorted(p.parent for p in path.glob("*/run.json"))
        if not inside:
            problem = "holds no run" if path.is_dir() else "no such folder"
            raise OpencseError(f"{path}: {problem}", "Name folders that `opencse train` or `run` wrote.")
        folders += inside
    return list(dict.fromkeys(path.resolve() for path in folders))


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
    try:
        return RunRecord(
            folder=folder,
            recipe=str(record["recipe"]),
            variant=str(record["variant"]),
            backbone=str(record["backbone"]),
            seed=int(record["seed"]),
            settings=_settings(recipe),
            corpus=str(record["fingerprint"]["corpus"]),
            weights=str(record["fingerprint"]["backbone"]),
            rows=int(record["rows"]),
            steps=int(outcome["steps"]),
            seconds=float(outcome["seconds"]),
            before=_scores(results.get("before", {})),
            after=_scores(results.get("after", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OpencseError(f"{folder}: not written by a run ({error!r})", _REMEDY) from None


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Group runs that differ only in the seed, in order of first occurrence.

    Of several runs with the same seed only the first is kept, with a note.
    """
    members: dict[str, list[RunRecord]] = {}
    for run in runs:
        key = [run.recipe, run.variant, run.weights, run.corpus, run.rows, sorted(run.settings.items())]
        members.setdefault(json.dumps(key, default=str), []).append(run)
    groups = []
    for label, same in zip(_labels([runs[0] for runs in members.values()]), members.values(), strict=True):
        seeds: dict[int, RunRecord] = {}
        repeated = [run for run in same if seeds.setdefault(run.seed, run) is not run]
        notes = (f"{label}: seed {run.seed} occurs again in {run.folder}, and is counted once" for run in repeated)
        groups.append(Group(label=label, runs=tuple(seeds[seed] for seed in sorted(seeds)), notes=tuple(notes)))
    return groups


def _labels(first_runs: list[RunRecord]) -> list[str]:
    """Return distinct names of groups, with what groups of the same name differ in."""
    same_name: dict[str, list[dict[str, Any]]] = {}
    named = []
    for run in first_runs:
        variant = "" if run.variant == "sound" else f" ({run.variant})"
        name = f"{run.recipe}{variant} on {Path(run.backbone).name or run.backbone}"
        text = {"corpus": f"{run.corpus[:6]} of {run.rows:,} rows", "weights": run.weights[:6]}
        named.append((name, {**dict(sorted(run.settings.items())), **text}))
        same_name.setdefault(name, []).append(named[-1][1])
    labels = []
    for name, facts in named:
        others = same_name[name]
        keys = dict.fromkeys(key for other in (facts, *others) for key in other)
        differ = [key for key in keys if any(other.get(key) != others[0].get(key) for other in others)]
        labels.append(", ".join([name, *(f"{key}={facts.get(key)}" for key in differ)]))
    return labels


def _settings(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that affect the result as a flat table, with names like `terms.info_nce.temperature`."""
    ignored = ("title", "paper", "differs", "published", "training.seed", "training.log_every")
    return {key: value for key, value in _flat("", recipe) if not key.startswith(ignored)}


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
