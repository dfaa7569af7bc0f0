"""The results of an evaluation, and the same as JSON and as tables."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation.task import Results, TaskResult
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json
from opencse.foundation.result_table import Number, Table

_SHOWN = {
    "sts": ("spearman",),
    "pairs": ("spearman",),
    "transfer": ("accuracy",),
    "classification": ("accuracy", "few_shot_accuracy"),
}
_LIBRARIES = ("opencse", "torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Evaluation(JupyterMixin):
    """Scores of one model, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        results: Results by suite.
        settings: Settings that they depend on (JSON types, the head of the JSON result).
        texts: Number of distinct texts, each encoded once.
        asked: Number of texts that the tasks need, repetitions included.
    """

    results: dict[str, Results]
    settings: dict[str, Any]
    texts: int
    asked: int

    def __rich__(self) -> RenderableType:
        settings = self.settings
        return Group(
            Text(f"{settings['model']}: {settings['pooling']} pooling, {settings['precision']}"),
            *(as_table(suite, results) for suite, results in self.results.items()),
            Text(f"{self.texts:,} distinct texts of {self.asked:,}, each encoded once"),
        )


def as_json(evaluation: Evaluation, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results with all settings that they depend on, as JSON types.

    Args:
        evaluation: The results.
        settings: Further settings, put first.
    """
    suites = evaluation.results
    averages = {suite: {"of": _averaged(results), "score": results.average} for suite, results in suites.items()}
    tasks = {
        result.task: {"suite": suite, **{key: value for key, value in asdict(result).items() if key != "task"}}
        for suite, results in suites.items()
        for result in results.results
    }
    return {
        **settings,
        **evaluation.settings,
        "scale": 100,
        "tasks": tasks,
        "averages": averages,
        **({"average": next(iter(averages.values()))} if len(averages) == 1 else {}),
        "distinct_texts": evaluation.texts,
        "asked_texts": evaluation.asked,
        "seconds": round(sum(results.seconds for results in suites.values()), 3),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
    }


def as_table(suite: str, results: Results) -> Table:
    """Return a table with a column for each task and the average, and a row for each metric shown."""
    found = results.results
    shown = _SHOWN.get(suite) or tuple(dict.fromkeys(metric for each in found for metric in each.metrics))
    averaged = ["average"] if len(_averaged(results)) > 1 else []
    rows = []
    for metric in shown:
        cells = [
            Number(each.metrics[metric], 2 if each.main else 4) if metric in each.metrics else "" for each in found
        ]
        main = all(each.main in (metric, None) for each in found)
        rows.append((metric, *cells, *(Number(results.average) if main else "" for _ in averaged)))
    reasons = [
        f"{each.task}: {metric} is undefined: {reason}" for each in found for metric, reason in each.undefined.items()
    ]
    caption = _caption(suite, results)
    notes = [*([caption] if caption else []), *reasons]
    return Table(("", *(each.task for each in found), *averaged), rows, title=suite, notes=notes)


def _averaged(results: Results) -> list[str]:
    return [result.task for result in results.results if result.main is not None]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None


def _caption(suite: str, results: Results) -> str:
    """Return the unit of a suite's scores, and the settings that they depend on."""
    first = results.results[0].details
    if suite in ("sts", "pairs"):
        return f"Spearman x 100, all pairs of a task together; {first['text']} text"
    if suite == "transfer":
        return f"accuracy in %, classifier: {first['classifier']}"
    if suite == "classification":
        return "accuracy in %: on all training texts, and on a few per class as in mteb"
    if suite == "development":
        return "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong"
    return {"retrieval": "in %", "reranking": "in %", "guard": "in %"}.get(suite, "")


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
