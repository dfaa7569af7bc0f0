"""Run folders as `train` and `run` write them, without a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RECIPE = """title = "A remark"

[[terms]]
kind = "info_nce"
name = "info_nce"
temperature = {temperature}

[training]
seed = {seed}
log_every = 25

[published]
bert-base = 76.25
"""


def write_run(
    folder: Path,
    *,
    seed: int = 1,
    recipe: str = "simcse",
    variant: str = "sound",
    scores: Mapping[str, float | None] | None = None,
    temperature: float = 0.05,
    corpus: str = "c0ffee",
    finished: bool = True,
) -> Path:
    folder.mkdir(parents=True)
    record = {
        "recipe": recipe,
        "variant": variant,
        "backbone": "models/bert-base-uncased",
        "rows": 1000,
        "seed": seed,
        "fingerprint": {"recipe": "", "corpus": corpus, "backbone": "abc123def"},
    }
    if finished:
        record["outcome"] = {"steps": 250, "seconds": 100.0 + seed}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "recipe.toml").write_text(RECIPE.format(seed=seed, temperature=temperature))
    if scores is not None:
        tasks = [{"task": task, "main": "spearman", "metrics": {"spearman": score}} for task, score in scores.items()]
        (folder / "results.json").write_text(json.dumps({"before": {}, "after": {"sts": {"tasks": tasks}}}))
    return folder


def seven(average: float) -> dict[str, float]:
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    return {task: average + index - 3 for index, task in enumerate(tasks)}
