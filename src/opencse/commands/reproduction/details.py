"""Measurements of a model beside its scores, and figures and texts of several models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from opencse.commands.reports.drawing import Draw
from opencse.commands.reports.figures import counted, histogram, scatter
from opencse.commands.reproduction.entries import Entry
from opencse.commands.reproduction.neighbours import Neighbours, list_neighbours
from opencse.commands.reproduction.pair_cosines import Listing, PairCosines, list_pairs, list_training_pairs
from opencse.commands.reproduction.projection import Projection, draw_projections

Detail = PairCosines | Neighbours | Projection
"""The measurement of one model; `scores()` returns its part of the table."""


def detail_figures(entry: Entry, details: Mapping[str, Detail]) -> dict[str, Draw]:
    """Return the figures of an entry, by what is added to its name.

    Args:
        entry: The table or figure.
        details: By label, what each model gave.
    """
    projections = {label: each for label, each in details.items() if isinstance(each, Projection)}
    if projections:
        return {"": partial(draw_projections, projections)}
    pairs = {label: each for label, each in details.items() if isinstance(each, PairCosines)}
    if not pairs or entry.plot not in ("scatter", "histogram"):
        return {}
    groups = list(dict.fromkeys(group for each in pairs.values() for group in each.pairs))
    lowest = min(float(cosines.min()) for each in pairs.values() for cosines in each.cosines.values())

    def draw(clouds: Mapping[str, tuple[PairCosines, str]]) -> Draw:
        """Draw a group of pairs of each label."""
        if entry.plot == "histogram":
            counts = {label: counted(each.cosines[group]) for label, (each, group) in clouds.items()}
            return partial(histogram, counts, "cosine of the pair")
        points = {label: (each.cosines[group], each.error_rates[group]) for label, (each, group) in clouds.items()}
        return partial(scatter, points, lowest)

    found: dict[str, Draw] = {}
    for group in groups:
        clouds = {label: (each, group) for label, each in pairs.items() if group in each.pairs}
        found[f"-{_file_name(group)}" if len(groups) > 1 else ""] = draw(clouds)
    if entry.plot == "scatter" and len(groups) > 1:
        label, first = next(iter(pairs.items()))
        found[f"-{_file_name(label)}"] = draw({group: (first, group) for group in groups})
    return found


def detail_listing(entry: Entry, details: Mapping[str, Detail]) -> Listing:
    """Return the texts that an entry shows."""
    found = {label: each for label, each in details.items() if isinstance(each, Neighbours)}
    if found:
        return list_neighbours(found, entry.queries)
    pairs = {label: each for label, each in details.items() if isinstance(each, PairCosines)}
    if not pairs or not entry.texts:
        return ()
    return (list_training_pairs if entry.kind == "training_pairs" else list_pairs)(pairs, entry.texts)


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())
