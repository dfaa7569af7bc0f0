"""What is learned, and what the guards lose, on the way to the trained weights: `debias` beside the recipe before.

    python benchmarks/debias/curve.py -o docs/figures/debias-curve

Reads debias-curve.csv and debias-curve-before.csv in benchmarks/results, two tables of shares.py; each column is a
point. Writes OUT-antonyms and OUT-word-order, as .svg and .png.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from opencse.reports.drawing import figure, legend, save
from opencse.reports.palette import Palette

RESULTS = Path(__file__).parents[1] / "results"
RECIPES = {"debias": "debias-curve.csv", "the recipe before": "debias-curve-before.csv"}
LEARNED = {"antonyms": "Negated antonyms, affirmed, %", "word-order": "Word order, area under the curve"}


def read_points(path: Path, measure: str) -> list[tuple[float, float]]:
    """Mean of the guards and a measure, from the untouched model (the first column) to the trained weights."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = {name: [float(cell.split(" ±")[0]) for cell in cells] for name, *cells in list(csv.reader(file))[1:]}
    guards = [values for name, values in rows.items() if name.startswith("guard-")]
    return list(zip(map(statistics.mean, zip(*guards, strict=True)), rows[measure], strict=True))


def draw(measure: str, palette: Palette) -> Figure:
    """One measure of what is learned, of both recipes."""
    drawn, axes = figure(palette, 2.9)
    for index, (recipe, file) in enumerate(RECIPES.items()):
        points = read_points(RESULTS / file, measure)
        axes.plot(
            *zip(*points, strict=True), "os"[index] + "-", color=palette.series[index], markersize=4, label=recipe
        )
    start = points[0]  # of both
    axes.annotate("untouched", start, (-8, -3), textcoords="offset points", ha="right", color=palette.muted)
    axes.set_xlabel("mean of the four guards")
    axes.set_ylabel(measure)
    legend(axes, palette)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    out = parser.parse_args().out
    for ending, measure in LEARNED.items():
        save(partial(draw, measure), out.with_name(f"{out.name}-{ending}"))


if __name__ == "__main__":
    main()
