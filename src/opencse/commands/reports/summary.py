"""The headline figures of a report, and the scores on a model card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import EvalResult, ModelCard

from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.scored_pairs import WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED
from opencse.foundation.files import write_text
from opencse.foundation.result_table import Cell, Number, Table

_SECTION = "## Before and after"
_PUBLISHED = "Unsupervised SimCSE {:.2f}, supervised {:.2f} (OssCSE Table 3)."
_CARDS = (
    (
        *("transformations", "paraphrase_above_negation", "Paraphrase above negation"),
        "How often is the paraphrase closer than the negation, which has nearly the same words?",
        "100 % is right; below 50 %, wording counts more than meaning.",
    ),
    (
        *("retrieval", "negation_first", "Search finds the negation first"),
        "How often is the first hit for a sentence its own negation?",
        "0 % is right. Searched: all sentences, paraphrases and negations.",
    ),
    (
        *("splits", "opposed", "Agreement where wording misleads"),
        "Rank correlation with people on pairs whose wording contradicts their meaning (Oppn.).",
        _PUBLISHED.format(WEIGHTED_UNSUPERVISED[1], WEIGHTED_SUPERVISED[1]),
    ),
    (
        *("splits", "consistent", "Agreement where wording helps"),
        "The same on pairs whose wording agrees with their meaning (Cont.).",
        _PUBLISHED.format(WEIGHTED_UNSUPERVISED[0], WEIGHTED_SUPERVISED[0]),
    ),
)
"""The headline figures: where each stands in the scores, its title, its question, and values to compare with."""


class Card(NamedTuple):
    """A headline figure with the value of each model.

    Attributes:
        values: For each model its name, its value with the interval, and the length of its bar (0 to 1), if it has one.
        note: Values to compare with.
    """

    title: str
    question: str
    values: tuple[tuple[str, Number | None, float | None], ...]
    note: str


def headline_rows(models: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the headline figures for which there is data, with a cell for each model."""
    return [[card.title, *(value or "" for _, value, _ in card.values)] for card in cards(models)]


def cards(models: Mapping[str, ProbeScores]) -> list[Card]:
    """Return the headline figures for which there is data."""
    found = []
    for part, measure, title, question, note in _CARDS:
        values: list[tuple[str, Number | None, float | None]] = []
        for name, scores in models.items():
            if (each := getattr(getattr(scores, part), measure, None)) is None:
                values.append((shown(name, 40), None, None))
                continue
            number = each.number() if part == "splits" else each.percent()
            values.append((shown(name, 40), number, None if each.value is None else max(0.0, min(1.0, each.value))))
        if any(number is not None for _, number, _ in values):
            found.append(Card(title, question, tuple(values), note))
    return found


def add_scores(readme: Path, models: Mapping[str, ProbeScores], made_of: str) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        made_of: Description of the training text.
    """
    kept = readme.read_text(encoding="utf-8").split(f"\n{_SECTION}")[0].rstrip()
    text = f"{kept}\n\n{_SECTION}\n\nText: {made_of}.\n\n{card_table(models)}\n"
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
