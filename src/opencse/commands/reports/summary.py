"""The summary of a report, and of a model card: a few headline figures and conclusions in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from huggingface_hub import EvalResult, ModelCard

from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.estimates import mean_estimate
from opencse.evaluation.probes.scored_pairs import WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED
from opencse.foundation.files import write_text
from opencse.foundation.result_table import Cell, Number, Table

_SECTION = "## Before and after"
_OPPN, _CONT = (
    f"Unsupervised SimCSE {unsupervised:.2f}, supervised {supervised:.2f} (OssCSE Table 3)."
    for unsupervised, supervised in zip(reversed(WEIGHTED_UNSUPERVISED), reversed(WEIGHTED_SUPERVISED), strict=True)
)
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
        _OPPN,
    ),
    (
        *("splits", "consistent", "Agreement where wording helps"),
        "The same on pairs whose wording agrees with their meaning (Cont.).",
        _CONT,
    ),
)
"""The headline figures: where each stands in the scores, its title, its question, and values to compare with."""


class Card(NamedTuple):
    """A headline figure with the value of each model.

    Attributes:
        title: The measure.
        question: The question that the figure answers.
        values: For each model its name, its value with the interval, and the length of its bar (0 to 1; None for none).
        note: Values to compare with.
    """

    title: str
    question: str
    values: tuple[tuple[str, Number, float | None], ...]
    note: str


def verdict(models: Mapping[str, ProbeScores]) -> list[str]:
    """Return one paragraph for each model, and one that compares each further model with the first."""
    paragraphs = [text for name, found in models.items() if (text := _about(shown(name, 60), found))]
    first, *others = models
    return paragraphs + [text for other in others if (text := _against(models, first, other))]


def _about(label: str, found: ProbeScores) -> str:
    sentences = []
    rate = found.transformations.paraphrase_above_negation if found.transformations else None
    if rate is not None and rate.value is not None:
        sentences.append(
            f"{label} ranks the paraphrase of a sentence above its negation for {round(rate.value * rate.rows)} "
            f"of {rate.rows:,} sentences ({rate.percent().figure})."
        )
    if found.splits is not None and found.splits.opposed.value is not None:
        sentences.append(
            f"{'It' if sentences else label} agrees with people at {found.splits.consistent.number(2).figure} (rank "
            f"correlation) where wording agrees with meaning, and at "
            f"{found.splits.opposed.number(2).figure} where it misleads."
        )
    return " ".join(sentences)


def _against(models: Mapping[str, ProbeScores], first: str, other: str) -> str:
    """Compare two models on the same sentences."""
    a, b = models[first].transformations, models[other].transformations
    if a is None or b is None or not a.rows_above or len(a.rows_above) != len(b.rows_above):
        return ""
    change = mean_estimate(np.array(b.rows_above, dtype=float) - np.array(a.rows_above, dtype=float))
    if change.value is None or change.low is None or change.high is None:
        return ""
    points = 100 * change.value
    amount = f"{Number(abs(points), 0)} point{'' if round(abs(points)) == 1 else 's'}"
    spread = f"95 % interval {change.interval(0, scale=100)}"
    if change.low <= 0 <= change.high:
        pair = f"{shown(other, 60)} and {shown(first, 60)}"
        return f"The difference between {pair} on these sentences is within chance: {amount} ({spread})."
    word = "more" if points > 0 else "less"
    return f"{shown(other, 60)} does so {word} often than {shown(first, 60)}, by {amount} ({spread})."


def headline_rows(models: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the headline figures for which there is data, with a cell for each model."""
    rows: list[list[Cell]] = []
    for card in cards(models):
        values = {name: value for name, value, _ in card.values}
        rows.append([card.title, *(values.get(shown(name, 40), "") for name in models)])
    return rows


def cards(models: Mapping[str, ProbeScores]) -> list[Card]:
    """Return the headline figures for which there is data."""
    found = []
    for part, measure, title, question, note in _CARDS:
        parts = {name: getattr(each, part) for name, each in models.items()}
        values = []
        for name, each in ((name, getattr(scores, measure)) for name, scores in parts.items() if scores):
            number = each.number() if part == "splits" else each.percent()
            values.append((shown(name, 40), number, None if each.value is None else max(0.0, min(1.0, each.value))))
        if values:
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
