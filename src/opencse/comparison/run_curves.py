"""Learning curves: development score or loss by step, one line for each group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from opencse.comparison.run_groups import Group
from opencse.reports.curves import draw_curves
from opencse.reports.drawing import save


def save_curves(groups: Sequence[Group], path: Path) -> list[Path]:
    """Write the learning curves as `path`.svg and `path`.png; return the paths, none if no run logged anything.

    Development scores are drawn if every group has them, and otherwise losses, which are not comparable across recipes.
    """
    dev = all(any(run.curve for run in group.runs) for group in groups)
    curves = {
        group.label: [curve for run in group.runs if (curve := run.curve if dev else run.losses)] for group in groups
    }
    if not any(curves.values()):
        return []
    return save(partial(draw_curves, curves, "Spearman × 100, development" if dev else "loss"), path)
