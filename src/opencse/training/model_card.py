"""The card of a trained model: metadata for a model hub, then method, data, settings and scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCardData, metadata_load
from jinja2 import StrictUndefined, Template

from opencse.encoder.saving import OLDEST
from opencse.recipes import Recipe
from opencse.training.session import TrainingOutcome


@dataclass
class CardAdditions:
    """What callbacks add to the model card.

    Attributes:
        sections: Sections in Markdown, after the example of use.
        results: Scores in the metadata, which a model hub shows.
        own_code: Whether the model's folder has its own module, which needs
            `trust_remote_code`.
    """

    sections: list[str] = field(default_factory=list)
    results: list[EvalResult] = field(default_factory=list)
    own_code: bool = False


def encoder_card(
    recipe: Recipe,
    record: dict[str, Any],
    outcome: TrainingOutcome,
    additions: CardAdditions,
    *,
    language: str | None = None,
) -> str:
    """Return the model card: metadata for a model hub, then method, data, settings and scores.

    Args:
        recipe: The resolved recipe.
        record: The content of `run.json`.
        outcome: Steps, scores and time.
        additions: What callbacks add.
        language: Code of the language of the training text.
    """
    name, license = base_model(record["backbone"])
    metadata = ModelCardData(
        language=language,
        license=license,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "opencse"],
        base_model=name,
        model_name=f"opencse {recipe.name}",
        eval_results=additions.results or None,
    )
    return render(
        Path(__file__).parent / "card.md.j2",
        recipe=recipe,
        record=record,
        outcome=outcome,
        additions=additions,
        metadata=metadata.to_yaml().strip(),
        oldest=OLDEST,
    )


def render(template: Path, **values: Any) -> str:
    """Return a text from a Jinja template, in which every name must be given."""
    text = template.read_text(encoding="utf-8")
    return Template(
        text, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    ).render(**values)


def hub_score(task: str, data: str, metric: str, points: float) -> EvalResult:
    """Return a score, times 100, as a model hub reads it; `task` and `metric` are the hub's names."""
    return EvalResult(
        task_type=task,
        task_name=task.replace("-", " ").title(),
        # A model hub shows results of one type as those of one set.
        dataset_type=data.replace(" ", "-"),
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
        is_hub_id = re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(name))
        return (str(name), None) if is_hub_id else (None, None)
    # The card of a model, or of a run's model.
    metadata: Any = None
    try:
        for card in (folder / "README.md", folder / "model" / "README.md"):
            if card.is_file():
                metadata = metadata_load(card)
                break
    except (ValueError, RecursionError, OSError, AttributeError, TypeError, yaml.YAMLError):
        return None, None
    if not isinstance(metadata, Mapping):
        return None, None
    base = metadata.get("base_model")
    if isinstance(base, list) and base:
        base = base[0]
    return _if_text(base), _if_text(metadata.get("license"))


def _if_text(value: Any) -> str | None:
    """Return a value of a model card if it is text; people write anything there."""
    return value if isinstance(value, str) else None
