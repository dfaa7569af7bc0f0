"""The strength of a meaning block in a report: what is gained and lost at each, as a figure."""

from __future__ import annotations

from functools import partial
from operator import sub

from opencse.commands.reports.curves import draw_curves
from opencse.commands.reports.figures import Picture
from opencse.commands.reports.text import shown
from opencse.training.strength import Scores, StrengthCurve


def strength_picture(curve: StrengthCurve) -> Picture:
    """Return a figure of what each measure of meaning gains, and of what the worst guard loses, by strength."""
    groups = {
        shown(name.removeprefix("dev-"), 40): [_gains(curve, {name: values})] for name, values in curve.meaning.items()
    }
    if curve.guards:
        groups["the guard that loses most"] = [_gains(curve, curve.guards)]
    return Picture(
        "strength",
        "What the strength of the meaning block gains and costs",
        f"Points above the model without the block. This model has the strength {curve.chosen:g}, the largest at "
        f"which no guard loses more than {curve.tolerance:g}; it can be changed without encoding anything anew.",
        partial(draw_curves, groups, "points", along="strength"),
    )


def _gains(curve: StrengthCurve, scores: Scores) -> list[tuple[float, float]]:
    """Return the least gain of some measures at each strength."""
    by_strength = zip(*scores.values(), strict=True)
    before = [values[0] for values in scores.values()]
    gains = [min(map(sub, after, before)) for after in by_strength]
    return list(zip(curve.strengths, gains, strict=True))
