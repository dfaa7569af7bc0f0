"""The section of a model card with scores before and after training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard

from opencse.commands.reports.summary import headline_rows
from opencse.commands.reports.text import shown
from opencse.evaluation.compatibility import StoredVectors
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.files import write_text
from opencse.foundation.result_table import Cell, Number, Table

_HEAD = "## Before and after"


def add_scores(
    readme: Path, models: Mapping[str, ProbeScores], made_of: str, stored: StoredVectors | None = None
) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        made_of: Description of the training text.
        stored: Whether stored vectors of the untouched model stay usable.
    """
    kept = readme.read_text(encoding="utf-8").split(f"\n{_HEAD}")[0].rstrip()
    advice = "" if stored is None else f"\n{stored.advice()}\n"
    text = f"{kept}\n\n{_HEAD}\n\nText: {made_of}.\n\n{card_table(models)}\n{advice}"
    write_text(readme, _with_results(text, list(models.values())[-1]))


def _with_results(text: str, found: ProbeScores) -> str:
    """Add the scores of the trained model to the metadata of the card, where a model hub reads them."""
    scores = [task for task in found.sts if task.score is not None]
    if not scores or not text.startswith("---\n"):
        return text
    card = ModelCard(text, ignore_metadata_errors=True)
    data: Any = card.data
    data.model_name = data.model_name or "opencse"
    data.eval_results = [
        EvalResult(
            task_type="semantic-similarity",
            task_name="Semantic Similarity",
            dataset_type="unknown",
            dataset_name=task.task,
            metric_type="spearman_cosine",
            metric_name="Spearman Cosine",
            metric_value=round(float(task.score or 0) / 100, 4),
        )
        for task in scores
    ]
    return f"---\n{data.to_yaml()}\n---\n\n{card.text.lstrip()}"


def card_table(models: Mapping[str, ProbeScores]) -> str:
    """Return a Markdown table of the Spearman correlations (x 100) and the headline figures of the probe."""
    first, *_ = models.values()
    rows: list[list[Cell]] = []
    for i, task in enumerate(first.sts):
        scores = [found.sts[i].score for found in models.values()]
        rows.append([task.task, *("–" if score is None else Number(score) for score in scores)])
    rows += headline_rows(models)
    return Table(["", *(shown(name, 40) for name in models)], rows).markdown().rstrip()
