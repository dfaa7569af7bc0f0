"""The figures of a probe report with their titles and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from opencse.commands.reports import figures
from opencse.commands.reports.drawing import Draw
from opencse.commands.reports.text import shown
from opencse.evaluation.probes import PairKind, ProbeScores


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with its title and caption.

    Attributes:
        name: File name without ending.
        title: Heading on the page.
        caption: Text below the heading.
        draw: Function from a palette to the figure.
    """

    name: str
    title: str
    caption: str
    draw: Draw


def report_pictures(models: Mapping[str, ProbeScores]) -> list[Picture]:
    """Return the figures for which there is data, the most informative first.

    Args:
        models: Scores by label; the first model decides which figures there are.
    """
    return [*_transformations(models), *_scored_pairs(models), *_training_pairs(models)]


def _transformations(models: Mapping[str, ProbeScores]) -> Iterator[Picture]:
    first = next(iter(models.values())).transformations
    if first is None or not first.kinds:
        return
    yield Picture(
        name="transformations",
        title="Which transformations does the model take for the same meaning?",
        caption="Mean cosine of a sentence with each transformation, 95 % interval. The paraphrase should be far to "
        "the right of the negation.",
        draw=partial(figures.means, models),
    )
    for index, (name, scores) in enumerate(models.items(), 1):
        found = scores.transformations
        kinds = () if found is None else found.kinds
        clouds = {k.kind: (k.cosines, k.error_rates) for k in kinds if k.kind in ("paraphrase", "negation")}
        if clouds:
            yield Picture(
                name=f"wording-{index}",
                title=f"Similarity against wording: {shown(name, 40)}",
                caption="Each mark is one sentence. If only meaning counted, paraphrases would lie to the right and "
                "negations to the left, at any height.",
                draw=partial(figures.scatter, clouds, figures.lowest_cosine(models)),
            )


def _scored_pairs(models: Mapping[str, ProbeScores]) -> Iterator[Picture]:
    first = next(iter(models.values()))
    if first.splits is not None:
        yield Picture(
            name="splits",
            title="Agreement with people, where wording helps and where it misleads",
            caption="Short lines are good: wording then matters little. Bars: unsupervised SimCSE as published.",
            draw=partial(figures.splits, models),
        )
    if first.suppression is not None and first.suppression.cosines:
        found = {name: each.suppression for name, each in models.items()}
        counts = {name: figures.counted(each.cosines) for name, each in found.items() if each and each.cosines}
        yield Picture(
            name="suppression",
            title="Same meaning, different words",
            caption="Cosines of pairs that people score 4 or more of 5 though they share less than 60 % of their "
            "words. A narrow peak at the right is good.",
            draw=partial(figures.histogram, counts, "cosine of the pair"),
        )
    if first.length is not None:
        yield Picture(
            name="length",
            title="Does length matter?",
            caption="Mean cosine beyond the prediction from human scores, by difference of length. A flat line at 0 "
            "means no bias.",
            draw=partial(figures.length, models),
        )


def _training_pairs(models: Mapping[str, ProbeScores]) -> Iterator[Picture]:
    first = next(iter(models.values())).training_pairs
    if not first:
        return
    yield Picture(
        name="pairs-overlap",
        title="Training pairs: wording",
        caption="Positives that share few words and negatives that share many teach the most.",
        draw=partial(figures.histogram, _counts(first, "overlap"), "lexical overlap of the pair"),
    )
    for index, (name, scores) in enumerate(models.items(), 1):
        yield Picture(
            name=f"pairs-cosine-{index}",
            title=f"Training pairs: meaning by {shown(name, 40)}",
            caption="Cosines of positive and of negative pairs.",
            draw=partial(figures.histogram, _counts(scores.training_pairs, "cosine"), "cosine of the pair"),
        )


def _counts(kinds: Sequence[PairKind], measure: str) -> dict[str, Sequence[int]]:
    """Return the histogram of `overlap` or `cosine` of each kind of pairs, by column and role."""
    return {f"{kind.column} ({kind.role})": getattr(kind, f"{measure}_counts") for kind in kinds}
