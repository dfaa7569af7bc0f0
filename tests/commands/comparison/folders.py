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
        "family": "bert-base",
        "backbone": "models/bert-base-uncased",
        "corpus": "corpus.txt",
        "rows": 1000,
        "blank_rows": 0,
        "seed": seed,
        "fingerprint": {"recipe": "", "corpus": corpus, "backbone": "abc123def"},
    }
    if finished:
        best = {"best_step": 125, "best_score": 80.0 + seed, "first_score": 60.0}
        record["outcome"] = {"steps": 250, "seconds": 100.0 + seed, **best}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "recipe.toml").write_text(RECIPE.format(seed=seed, temperature=temperature))
    if scores is not None:

        def suite(shift: float) -> dict:
            tasks = [
                {"task": t, "main": "spearman", "metrics": {"spearman": None if v is None else v - shift}}
                for t, v in scores.items()
            ]
            return {"sts": {"tasks": tasks, "average": None}}

        (folder / "results.json").write_text(json.dumps({"before": suite(7.0), "after": suite(0)}))
    return folder


def seven(average: float) -> dict[str, float]:
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    return {task: average + index - 3 for index, task in enumerate(tasks)}
