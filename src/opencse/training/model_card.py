"""The card of a trained model: metadata for a model hub, then method, data, settings and scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCardData, metadata_load
from jinja2 import StrictUndefined, Template

from opencse.encoder.saving import OLDEST
from opencse.recipes import Recipe
from opencse.training.session import TrainingOutcome


def encoder_card(
    recipe: Recipe, record: dict[str, Any], outcome: TrainingOutcome, *, language: str | None = None
) -> str:
    """Return the model card: metadata for a model hub, then method, data, settings and scores.

    Args:
        recipe: The resolved recipe.
        record: The content of `run.json`.
        outcome: Steps, scores and time.
        language: Code of the language of the training text.
    """
    name, license = base_model(record["backbone"])
    results = None  # what a block gains: shares of triplets at the chosen strength
    if outcome.curve is not None:
        gained = outcome.curve.before_and_after(outcome.curve.meaning)
        results = [
            hub_score("triplet", f"opencse {n}", "cosine_accuracy", after)
            for n, (_, after) in gained.items()
        ]
    metadata = ModelCardData(
        language=language,
        license=license,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "opencse"],
        base_model=name,
        model_name=f"opencse {recipe.name}",
        eval_results=results,
    )
    text = (Path(__file__).parent / "card.md.j2").read_text(encoding="utf-8")
    template = Template(
        text, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return template.render(
        recipe=recipe,
        record=record,
        outcome=outcome,
        curve=outcome.curve,
        table=""
        if outcome.curve is None
        else replace(outcome.curve.table(), title="").markdown().rstrip(),
        metadata=metadata.to_yaml().strip(),
        oldest=OLDEST,
    )


def hub_score(task: str, data: str, metric: str, points: float) -> EvalResult:
    """Return a score, times 100, as a model hub reads it; `task` and `metric` are the hub's names."""
    return EvalResult(
        task_type=task,
        task_name=task.replace("-", " ").title(),
        dataset_type=data.replace(" ", "-"),  # results of one type count as one set's
        dataset_name=data,
        metric_type=metric,
        metric_name=metric.replace("_", " ").title(),
        metric_value=round(points / 100, 4),
    )


_BUNDLED = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")}


def base_model(name: str | Path) -> tuple[str | None, str | None]:
    """Return the hub id of the base model and the licence; None if unknown.

    Args:
        name: A hub id, a bundled name, or a folder, whose model card is read.
    """
    if str(name) in _BUNDLED:
        return _BUNDLED[str(name)]
    folder = Path(name)
    if not folder.is_dir():
        return (str(name) if re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(name)) else None), None
    card = next(
        (path for path in (folder / "README.md", folder / "model" / "README.md") if path.is_file()),
        None,
    )
    try:
        metadata: Any = None if card is None else metadata_load(card)
    except (ValueError, RecursionError, OSError, AttributeError, TypeError, yaml.YAMLError):
        return None, None
    if not isinstance(metadata, Mapping):
        return None, None
    base, license = metadata.get("base_model"), metadata.get("license")
    base = base[0] if isinstance(base, list) and base else base
    return (base if isinstance(base, str) else None), (
        license if isinstance(license, str) else None
    )
