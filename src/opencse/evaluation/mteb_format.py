"""Results in the file layout of `mteb`, so that its tools can read and compare them.

`<folder>/results/<model name>/<revision>/<task>.json` and a `model_meta.json` beside them. The revision is always the
hash of the weights: `mteb` stores every unnamed local model under one name and revision, and then returns the scores of
the first model for the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opencse.evaluation.task import Results, TaskResult
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json

_MTEB_NAMES = {
    "STS-B": "STSBenchmark",
    "Banking77": "Banking77Classification",
    "Emotion": "EmotionClassification",
    "AmazonCounterfactual": "AmazonCounterfactualClassification",
    "TweetSentiment": "TweetSentimentExtractionClassification",
}
"""`mteb`'s names of tasks. STS12 to STS16 and SICK-R have the same name; `mteb` does not have the others."""
_SUBSETS = {"AmazonCounterfactual": "en"}

# Required fields of mteb's `ModelMeta` that are unknown for a local model.
_UNKNOWN = (
    "loader release_date n_parameters memory_usage_mb max_tokens license open_weights public_training_code "
    "public_training_data use_instructions training_datasets"
).split()


def write_mteb(
    results: Iterable[Results], folder: str | Path, *, model: str, revision: str, dimension: int | None = None
) -> Path:
    """Write one file per task and `model_meta.json`.

    For a classification task of `mteb`, the score by `mteb`'s protocol is written (a few examples per class). Tasks
    without a main metric (geometry) do not fit this format and are left out.

    `mteb`'s own data is the raw text. Scores on other text are comparable with each other, not with `mteb`'s tables;
    each file's `dataset_revision` therefore names the text variant and the hash of the data instead of a hub revision.

    Args:
        results: Results of one or more suites.
        folder: Folder for `results/`.
        model: Model name; `mteb` wants `organisation/name`, other names get the prefix `local/`.
        revision: Hash of the weights.
        dimension: Width of the vectors.

    Returns:
        The folder with the files.
    """
    name = f"local/{slug(model)}" if Path(model).exists() else mteb_name(model)
    target = Path(folder) / "results" / name.replace("/", "__") / revision
    files = {
        _mteb_name(result): _task_json(result, seconds=suite.seconds / len(suite.results))
        for suite in results
        for result in suite.results
        if result.main is not None
    }
    if not files:
        raise OpencseError("no task fits mteb's format", "Use json.")
    meta = {
        **dict.fromkeys(_UNKNOWN),
        "name": name,
        "revision": revision,
        "languages": ["eng-Latn"],
        "framework": ["Sentence Transformers", "PyTorch"],
        "similarity_fn_name": "cosine",
        "embed_dim": dimension,
    }
    for task, document in {**files, "model_meta": meta}.items():
        write_json(target / f"{task}.json", document)
    return target


def _task_json(result: TaskResult, *, seconds: float) -> dict[str, Any]:
    """Return the file content of a task, with scores in [-1, 1] and six decimals."""
    if None in result.metrics.values():
        metric = next(name for name, value in result.metrics.items() if value is None)
        reason = result.undefined.get(metric, "a metric is missing")
        raise OpencseError(f"{result.task} is undefined ({reason})", "mteb's format has no such value: use json.")
    return {
        "dataset_revision": f"{result.details.get('text', 'given')}-sha256-{result.data_sha256}",
        "task_name": _mteb_name(result),
        "mteb_version": None,
        "scores": {
            "test": [
                {
                    **_scores(result),
                    "hf_subset": _SUBSETS.get(result.task, "default"),
                    "languages": ["eng-Latn"],
                }
            ]
        },
        "evaluation_time": round(seconds, 6),
        "kg_co2_emissions": None,
        "date": datetime.now(UTC).timestamp(),
    }


def _scores(result: TaskResult) -> dict[str, float]:
    """Return the metrics by `mteb`'s names."""
    values = {name: round((value or 0.0) / 100, 6) for name, value in result.metrics.items()}
    if result.main == "spearman":
        pearson, spearman = values["pearson"], values["spearman"]
        cosine_spearman = round(result.details["mteb_cosine_spearman"] / 100, 6)
        values = {"pearson": pearson, "spearman": spearman, "cosine_pearson": pearson}
        return {**values, "cosine_spearman": cosine_spearman, "main_score": cosine_spearman}
    if result.task in _MTEB_NAMES:
        values = {"accuracy": values["few_shot_accuracy"], "f1": values["few_shot_f1"]}
        return {**values, "main_score": values["accuracy"]}
    return {**values, "main_score": values[str(result.main)]}


def _mteb_name(result: TaskResult) -> str:
    return _MTEB_NAMES.get(result.task, slug(result.task))


def mteb_name(name: str) -> str:
    """Return the name if it is `organisation/name`, and otherwise its last part below `local/`."""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not name.startswith("."):
        return name
    return f"local/{slug(name)}"


def slug(name: str) -> str:
    """Return the last part of a path with only characters that are valid in file names."""
    return re.sub(r"[^\w.-]+", "-", name.rstrip("/").rpartition("/")[2]).strip("-") or "model"
