"""Run folders: one for each seed, read as records, and grouped where they differ only in the seed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LARGEST_SEED
from opencse.foundation.reading import read_json, read_text
from opencse.foundation.toml_tables import parse_toml

_REMEDY = "Leave the run out."
# Keys of a recipe that describe it.
_DESCRIPTIONS = ("title", "paper", "differs", "published")


@dataclass(frozen=True, kw_only=True, eq=False)
class FinishedRun:
    """A finished run.

    Attributes:
        name: Recipe and backbone.
        same: Everything that the result depends on but the seed, as text.
        scores: Scores of the trained model by suite and task; None for undefined ones.
    """

    folder: Path
    name: str
    same: str
    seed: int
    rows: int
    steps: int
    seconds: float
    scores: Mapping[str, Mapping[str, float | None]]


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a list such as `1,2,3`.

    Raises:
        OpencseError: It is none, names a seed twice, or too many.
    """
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        is_seed = re.fullmatch("[0-9]{1,10}", part) and int(part) <= LARGEST_SEED
        if not is_seed or parts.count(part) > 1:
            raise OpencseError(
                f"--seeds {text}: {part!r} is not a seed, or stands twice", "Write them as 1,2,3."
            )
    return [int(part) for part in parts]


def seed_folders(out: str | Path, seeds: Sequence[int]) -> dict[int, Path]:
    """Return the run folder of each seed, `OUT/seed-1` and so on, where `opencse compare OUT` finds them.

    Raises:
        OpencseError: `out` is itself a run.
    """
    out = Path(out)
    if (out / "run.json").is_file():
        raise OpencseError(
            f"{out}: is itself a run, not a folder of runs", "Choose another output folder."
        )
    return {seed: out / f"seed-{seed}" for seed in seeds}


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """Return the run folders among the paths and directly inside them.

    Raises:
        OpencseError: A path is not a folder, or contains no run.
    """
    folders: list[Path] = []
    for given in paths:
        path = Path(given)
        if (path / "run.json").is_file():
            inside = [path]
        else:
            inside = sorted(record.parent for record in path.glob("*/run.json"))
        if not inside:
            problem = "holds no run" if path.is_dir() else "no such folder"
            raise OpencseError(
                f"{path}: {problem}", "Name folders that `opencse train` or `run` wrote."
            )
        folders += inside
    # A run may be named by itself and by the folder that it is in.
    return list(dict.fromkeys(path.resolve() for path in folders))


def read_run(folder: str | Path) -> FinishedRun:
    """Read a run folder.

    Raises:
        OpencseError: A file is missing or damaged, or the run did not finish.
    """
    folder = Path(folder)
    record = read_json(folder / "run.json", _REMEDY)
    outcome = record.get("outcome")
    if not isinstance(outcome, dict):
        raise OpencseError(
            f"{folder}: this run is not finished", "Finish it with --resume, or leave it out."
        )
    recipe = parse_toml(read_text(folder / "recipe.toml", _REMEDY), str(folder / "recipe.toml"))
    results: Mapping[str, Any] = {}
    if (folder / "results.json").is_file():
        results = read_json(folder / "results.json", _REMEDY)
    try:
        name = record["recipe"]
        if record["variant"] != "sound":
            name += f" ({record['variant']})"
        fingerprint = record["fingerprint"]
        # What a recipe tells of itself, and how often it logs, changes no result.
        shared = {key: value for key, value in recipe.items() if key not in _DESCRIPTIONS}
        training = dict(recipe["training"])
        training.pop("seed", None)
        training.pop("log_every", None)
        shared["training"] = training
        same = [name, fingerprint["corpus"], fingerprint["backbone"], record["rows"], shared]
        scores = {}
        for suite, scored in results.get("after", {}).items():
            tasks = scored["tasks"]
            scores[suite] = {task["task"]: task["metrics"][task["main"]] for task in tasks}
        return FinishedRun(
            folder=folder,
            name=f"{name} on {Path(record['backbone']).name}",
            same=json.dumps(same, sort_keys=True, default=str),
            seed=int(record["seed"]),
            rows=int(record["rows"]),
            steps=int(outcome["steps"]),
            seconds=float(outcome["seconds"]),
            scores=scores,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OpencseError(f"{folder}: not written by a run ({error!r})", _REMEDY) from None


def group_runs(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Return groups of runs that differ only in the seed, by the label of the group.

    The runs of a group are in order of their seeds.
    The groups are in order of first occurrence. Of several runs with the same seed the first is
    kept. A label has the folder of the first run if two groups have the same recipe and backbone.
    """
    members: dict[str, dict[int, FinishedRun]] = {}
    for run in runs:
        members.setdefault(run.same, {}).setdefault(run.seed, run)
    groups = [[seeds[seed] for seed in sorted(seeds)] for seeds in members.values()]
    count = Counter(group[0].name for group in groups)
    labelled = {}
    for group in groups:
        first = group[0]
        label = first.name
        if count[first.name] > 1:
            label += f": {first.folder}"
        labelled[label] = group
    return labelled
