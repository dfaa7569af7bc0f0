"""The section of a model card with the scores before and after training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from opencse.commands.reports.tables import (
    headline_rows,
)
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.files import write_text
from opencse.foundation.page_text import shown
from opencse.foundation.result_table import Cell, Number, Table
from opencse.training.model_card import hub_score

_SECTION = "## Before and after"


def add_scores(
    readme: Path, models: Mapping[str, ProbeScores], trained: ProbeScores, made_of: str
) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        trained: Scores of the trained model, for the metadata.
        made_of: Description of the training text.
    """
    body = readme.read_text(encoding="utf-8").split(f"\n{_SECTION}")[0].rstrip()
    text = f"{body}\n\n{_SECTION}\n\nText: {made_of}.\n\n{card_table(models)}\n"
    write_text(readme, _with_results(text, trained))


def _with_results(text: str, probed: ProbeScores) -> str:
    """Add the scores of the trained model to the metadata of the card, where a model hub reads them."""
    scores = [task for task in probed.sts if task.score is not None]
    if not scores or not text.startswith("---\n"):
        return text
    card = ModelCard(text, ignore_metadata_errors=True)
    data: Any = card.data
    data.model_name = data.model_name or "opencse"
    # A section that replaces an earlier one replaces its scores, too.
    kept = []
    for result in data.eval_results or []:
        if result.metric_type != "spearman_cosine":
            kept.append(result)
    for task in scores:
        score = float(task.score or 0)
        kept.append(hub_score("semantic-similarity", task.task, "spearman_cosine", score))
    data.eval_results = kept
    return f"---\n{data.to_yaml()}\n---\n\n{card.text.lstrip()}"


def card_table(models: Mapping[str, ProbeScores]) -> str:
    """Return a Markdown table of the Spearman correlations (x 100) and the headline numbers of the probe."""
    first = next(iter(models.values()))
    rows: list[list[Cell]] = []
    for i, task in enumerate(first.sts):
        cells: list[Cell] = []
        for probed in models.values():
            score = probed.sts[i].score
            cells.append("–" if score is None else Number(score))
        rows.append([task.task, *cells])
    for i, task in enumerate(first.tasks):
        for metric in task.metrics:
            values = [Number(probed.tasks[i].metrics[metric]) for probed in models.values()]
            rows.append([f"{task.task}, {metric}", *values])
    rows += headline_rows(models)
    labels = [shown(name, 40) for name in models]
    return Table(["", *labels], rows).markdown().rstrip()
