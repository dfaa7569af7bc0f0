"""Results in the file layout of `mteb`, so that its tools can read and compare them.

`<folder>/results/<model name>/<revision>/<task>.json` and a `model_meta.json` beside them. The revision is always the
hash of the weights: `mteb` itself files every unnamed local model under one name and revision, and then returns the
first model's scores for the second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.evaluation.task import Results, TaskResult
from opencse.files import write_json

_MTEB_NAMES = {**{f"STS{year}": f"STS{year}" for year in range(12, 17)}, "STS-B": "STSBenchmark", "SICK-R": "SICK-R"}

# Fields of mteb's `ModelMeta` that it requires and that a local model has no answer to.
_UNKNOWN = (
    "loader",
    "release_date",
    "n_parameters",
    "memory_usage_mb",
    "max_tokens",
    "license",
    "open_weights",
    "public_training_code",
    "public_training_data",
    "use_instructions",
    "training_datasets",
)


def write_mteb(
    results: Results, folder: str | Path, *, model: str, revision: str, dimension: int | None = None
) -> Path:
    """Write one file per task and `model_meta.json`.

    `mteb`'s own data holds the raw text. Scores on other text are comparable with each other, not with `mteb`'s tables;
    each file's `dataset_revision` therefore names the text variant and the hash of the data instead of a hub revision.

    Args:
        results: Results of STS tasks.
        folder: Where `results/` goes.
        model: Model name; `mteb` wants `organisation/name`, and `local/` is put before anything else.
        revision: Hash of the weights.
        dimension: Width of the vectors.

    Returns:
        The folder with the files.
    """
    name = model if re.fullmatch(r"[\w.-]+/[\w.-]+", model) and not Path(model).exists() else f"local/{_slug(model)}"
    target = Path(folder) / "results" / name.replace("/", "__") / revision
    share = results.seconds / len(results.results)
    files = {_mteb_name(result): _task_json(result, seconds=share) for result in results.results}
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
    """One task's file; scores between -1 and 1, six decimals."""
    if any(result.metrics[metric] is None for metric in ("spearman", "pearson")):
        reason = result.undefined.get("spearman", "a metric is missing")
        raise OpencseError(f"{result.task} is undefined ({reason})", "mteb's format has no such value: use json.")
    spearman, pearson = (_fraction(result.metrics, metric) for metric in ("spearman", "pearson"))
    scores = {
        "pearson": pearson,
        "spearman": spearman,
        "cosine_pearson": pearson,
        "cosine_spearman": spearman,
        "main_score": spearman,
        "hf_subset": "default",
        "languages": ["eng-Latn"],
    }
    return {
        "dataset_revision": f"{result.details.get('text', 'given')}-sha256-{result.data_sha256}",
        "task_name": _mteb_name(result),
        "mteb_version": None,
        "scores": {"test": [scores]},
        "evaluation_time": round(seconds, 6),
        "kg_co2_emissions": None,
        "date": datetime.now(UTC).timestamp(),
    }


def _fraction(metrics: Mapping[str, float | None], name: str) -> float:
    return round((metrics[name] or 0.0) / 100, 6)


def _mteb_name(result: TaskResult) -> str:
    return _MTEB_NAMES.get(result.task, _slug(result.task))


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", Path(name).name or name).strip("-") or "model"
