"""What is learned and lost on the way from the untouched to the trained weights, by `debias` and the recipe before.

    python benchmarks/debias/curve.py -o docs/figures/debias-curve

Each point is a share of the way, the mean over the runs. Reads the tables of shares.py and tolerance.py in
benchmarks/results. Writes OUT-antonyms and OUT-word-order, as .svg and .png.
"""

from __future__ import annotations

import argparse
import csv
import re
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from opencse.reports.drawing import figure, legend, save
from opencse.reports.palette import Palette

RESULTS = Path(__file__).parents[1] / "results"
RECIPES = {"debias": "debias-way.csv", "the recipe before": "debias-tolerance.csv"}
LEARNED = {  # file's ending: the first words of a row, and what to write at the axis
    "antonyms": ("Negated antonyms, affirmed", "negated antonyms, %"),
    "word-order": ("Word order", "word order, area"),
}
STS = "Average of the seven STS"
Means = dict[float, float]


def read_means(path: Path) -> dict[str, Means]:
    """The means of each row by the share of the way, in percent."""
    with path.open(encoding="utf-8", newline="") as file:
        (_, *heads), *rows = csv.reader(file)
    shares = [0.0 if head == "untouched" else float(re.findall(r"\d+", head)[0]) for head in heads]
    return {
        name: {share: float(cell.split(" ±")[0]) for share, cell in zip(shares, cells, strict=True) if cell != "–"}
        for name, *cells in rows
    }


def draw(first_words: str, label: str, palette: Palette) -> Figure:
    """One measure of what is learned, of both recipes."""
    drawn, axes = figure(palette, 2.9)
    untouched = 0.0, 0.0
    for index, (recipe, file) in enumerate(RECIPES.items()):
        rows = read_means(RESULTS / file)
        learned = next(means for name, means in rows.items() if name.startswith(first_words))
        points = {share: (rows[STS][share], learned[share]) for share in sorted(learned)}
        untouched = points.pop(0.0, untouched)  # both recipes begin there
        x, y = zip(untouched, *points.values(), strict=True)
        axes.plot(x, y, "os"[index] + "-", color=palette.series[index], markersize=4, label=recipe)
    axes.annotate("untouched", untouched, xytext=(6, 2), textcoords="offset points", color=palette.muted)
    axes.set_xlabel("average of the seven STS")
    axes.set_ylabel(label)
    legend(axes, palette)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    out = parser.parse_args().out
    for ending, (first_words, label) in LEARNED.items():
        save(partial(draw, first_words, label), out.with_name(f"{out.name}-{ending}"))


if __name__ == "__main__":
    main()
