"""Figures of results, drawn from the data in benchmarks/results.

    python docs/_site/figures.py           # report which figures of the pages differ from their data
    python docs/_site/figures.py --write   # draw them again

Each function of `FIGURES` draws docs/figures/NAME.svg. Pages show them as pictures.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from opencse.foundation.figures import COLOURS, save

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FOLDER = ROOT / "docs" / "figures"

BLUE = "#2563a8"
ORANGE = "#c2661a"
GRAY = "#8a93a0"
PALE = "#c9d0d9"
WIDTH = 6.4
"""Inches of 72 units: narrow, so that texts stay readable on a phone."""


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def runs(name: str) -> list[dict[str, Any]]:
    """Return the single runs of a JSON lines file."""
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def panels(count: int, height: float, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with panels next to each other."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False, **options)
    return figure, list(axes[0])


def number(cell: str) -> float:
    """Return the first number of a cell, without thousands separators and what follows."""
    return float(cell.split()[0].replace(",", ""))


def interval(cell: str) -> tuple[float, float, float]:
    """Return value, low and high of a cell such as `81 (79 to 84)`."""
    value, _, rest = cell.partition(" (")
    low, _, high = rest.removesuffix(")").partition(" to ")
    return float(value), float(low), float(high)


def strength() -> Figure:
    """What each strength of the meaning vector gains, and what it costs."""
    rows = table("debias-strength")
    strengths = [number(row["strength"]) for row in rows]
    chosen = next(number(row["strength"]) for row in rows if "chosen" in row["strength"])
    names = [name for name in rows[0] if name != "strength"]
    figure, (left, right) = panels(2, 3.4)
    for name in names:
        axes = right if name.startswith("guard") else left
        values = [float(row[name]) for row in rows]
        gained = [value - values[0] for value in values]
        axes.plot(strengths, gained, marker="o", markersize=3.5, label=name.removeprefix("guard: "))
    left.set_title("Meaning: points gained", loc="left", fontsize=10.5)
    right.set_title("Search, classification: points lost", loc="left", fontsize=10.5)
    right.axhspan(-0.3, 0, color=PALE, alpha=0.5, linewidth=0)
    for axes in (left, right):
        axes.axvline(chosen, color=GRAY, linewidth=1.2, linestyle=":")
        axes.set_xlabel(f"strength (dotted: chosen, {chosen:g})")
        axes.legend(fontsize=9)
    return figure


def growth() -> Figure:
    """Seconds of each stage by the number of sentences."""
    by_stage: dict[str, list[tuple[float, float]]] = {}
    for row in table("growth"):
        point = (number(row["sentences"]), float(row["seconds"]))
        by_stage.setdefault(row["stage"].replace("`", ""), []).append(point)
    figure, (axes,) = panels(1, 4)
    for marker, (stage, points) in zip("osD^v", by_stage.items(), strict=False):
        sizes, seconds = zip(*points, strict=True)
        axes.plot(sizes, seconds, marker=marker, label=stage)
    sizes = (1e5, 1e7)
    axes.plot(sizes, [size / 1e5 * 2 for size in sizes], color=GRAY, linestyle=":", label="linear")
    axes.set(xscale="log", yscale="log", xlabel="sentences", ylabel="seconds, two cores")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside lower left", ncols=2, fontsize=9)
    return figure


def training_speed() -> Figure:
    """Sentences a second in training, next to sentence-transformers' trainer."""
    rows = table("training-speed")
    first = next(iter(rows[0]))
    labels = [
        row[first].replace("`", "").replace("SentenceTransformerTrainer", "ST trainer")
        for row in rows
    ]
    figure, both = panels(2, 2.3, sharey=True)
    for axes, column in zip(both, ("MiniLM, alone", "MPNet, alone"), strict=True):
        speeds = [number(row[column]) for row in rows]
        colors = [BLUE if label.startswith("opencse") else PALE for label in labels]
        axes.barh(range(len(rows)), speeds, color=colors)
        for place, speed in enumerate(speeds):
            axes.text(speed, place, f" {speed:g}", va="center", fontsize=9)
        axes.set_yticks(range(len(rows)), labels)
        axes.margins(x=0.15)
        axes.grid(visible=False)
        axes.set_title(column.removesuffix(", alone"), loc="left", fontsize=10.5)
        axes.set_xlabel("sentences a second")
    both[0].invert_yaxis()
    return figure


def systems() -> Figure:
    """STS average of each system in the short runs: a dot for each seed, mean and standard deviation."""
    scores: dict[str, list[float]] = {}
    for run in runs("systems-short"):
        scores.setdefault(run["system"], []).append(statistics.fmean(run["sts"].values()))
    ordered = sorted(scores, key=lambda name: statistics.fmean(scores[name]))
    figure, (axes,) = panels(1, 0.9 + 0.27 * len(ordered))
    for row, name in enumerate(ordered):
        values = scores[name]
        color = ORANGE if name == "simcse" else BLUE
        axes.plot(values, [row] * len(values), "o", color=color, alpha=0.35, markersize=5)
        spread = statistics.stdev(values) if len(values) > 1 else 0
        axes.errorbar(statistics.fmean(values), row, xerr=spread, fmt="D", color=color, capsize=3)
    untouched = next(
        float(row["Average"])
        for row in table("systems-untouched")
        if row["pooling"] == "mean of the tokens"
    )
    axes.axvline(untouched, color=GRAY, linestyle=":", linewidth=1.4)
    axes.text(untouched, len(ordered) - 0.4, " untouched encoder", color="#667080", fontsize=9)
    axes.set_yticks(range(len(ordered)), ordered)
    axes.set_ylim(-0.6, len(ordered))
    axes.set_xlabel("STS average (dots: single seeds)")
    axes.grid(visible=False, axis="y")
    return figure


def probe_scatter() -> Figure:
    """Cosine against wording of paraphrases and negations (OssCSE, Figure 1)."""
    rows = table("probe-scatter")
    figure, both = panels(2, 3.4, sharex=True, sharey=True)
    for axes, kind in zip(both, ("paraphrase", "negation"), strict=True):
        chosen = [row for row in rows if row["kind"] == kind]
        cosines = [float(row["cosine"]) for row in chosen]
        changed = [float(row["match error rate"]) for row in chosen]
        axes.scatter(cosines, changed, s=12, color=COLOURS[kind], alpha=0.6, linewidths=0)
        axes.axvline(statistics.fmean(cosines), color=COLOURS[kind], linestyle=":", linewidth=1.4)
        meaning = "same meaning" if kind == "paraphrase" else "opposite meaning"
        title = f"{kind} ({meaning})\nmean cosine {statistics.fmean(cosines):.2f}"
        axes.set_title(title, loc="left", fontsize=10.5)
        axes.set_xlabel("cosine with the sentence")
    both[0].set_ylabel("match error rate")
    return figure


def alignment_uniformity() -> Figure:
    """Alignment and uniformity of three models, here and in DiffCSE's paper (Table 11)."""
    points: dict[str, dict[str, tuple[float, float]]] = {}
    for row in table("reproduced"):
        if row["entry"] != "diffcse/table-11":
            continue
        measure = row["measure"].rpartition(": ")[2]
        points.setdefault(row["system"], {})[measure] = float(row["here"]), float(row["paper"])
    figure, (axes,) = panels(1, 3.4)
    for place, (system, found) in enumerate(points.items()):
        color = f"C{place}"
        for source, marker in ((0, "o"), (1, "s")):
            x, y = found["uniformity"][source], found["alignment"][source]
            filled = color if source == 0 else "white"
            axes.plot(x, y, marker, color=color, markerfacecolor=filled, markersize=8)
            axes.annotate(
                f"{system}{'' if source == 0 else ', paper'}",
                (x, y),
                xytext=(8, -3),
                textcoords="offset points",
                fontsize=9,
            )
    axes.set_xlabel("uniformity (more negative: spread more evenly)")
    axes.set_ylabel("alignment (lower: positives closer)")
    axes.margins(0.15)
    return figure


def learning_curves() -> Figure:
    """Development score by step, of the short runs."""
    by_system: dict[str, list[tuple[float, float]]] = {}
    for row in table("systems-curves"):
        point = (float(row["step"]), float(row["dev"]))
        by_system.setdefault(row["system"], []).append(point)
    figure, (axes,) = panels(1, 3.6)
    for marker, (system, points) in zip("osD^vPX*ph<>d" * 3, by_system.items(), strict=False):
        steps, scores = zip(*sorted(points), strict=True)
        axes.plot(steps, scores, marker=marker, markersize=4.5, label=system)
    axes.set(xlabel="step of 64 sentences", ylabel="Spearman × 100 on STS-B dev")
    figure.legend(loc="outside lower left", ncols=2, fontsize=9)
    return figure


def caught() -> Figure:
    """Contradictions that are noticed, and texts with the same meaning that are lowered by mistake."""
    rows = table("debias-caught")
    name, should = list(rows[0])[:2]
    groups = {
        "Contradictions lowered, % (more is better)": [row for row in rows if row[should] == "yes"],
        "Same meaning lowered, % (fewer is better)": [row for row in rows if row[should] == "no"],
    }
    scores = {
        "reranked": (BLUE, "o", "opencse.Reranker"),
        "words": (ORANGE, "s", "word list, no model"),
    }
    heights = [len(members) + 1 for members in groups.values()]
    figure = Figure(figsize=(WIDTH, 0.3 * sum(heights) + 1.2), layout="constrained")
    both = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    for axes, (title, members) in zip(both, groups.items(), strict=True):
        for offset, (score, (color, marker, label)) in zip(
            (-0.14, 0.14), scores.items(), strict=True
        ):
            for place, row in enumerate(members):
                value, low, high = interval(row[score])
                axes.plot([low, high], [place + offset] * 2, color=color, alpha=0.45, linewidth=2)
                axes.plot(
                    value, place + offset, marker, color=color, label=None if place else label
                )
        axes.set_yticks(range(len(members)), [row[name] for row in members])
        axes.set_ylim(len(members) - 0.4, -0.6)
        axes.set_xlim(-3, 103)
        axes.grid(visible=False, axis="y")
        axes.set_title(title, loc="left", fontsize=10.5)
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=9)
    return figure


FIGURES = {
    "debias-caught": caught,
    "debias-strength": strength,
    "growth": growth,
    "training-speed": training_speed,
    "systems-sts": systems,
    "learning-curves": learning_curves,
    "probe-scatter": probe_scatter,
    "alignment-uniformity": alignment_uniformity,
}


def main(write: bool) -> int:
    """Draw the figures, or name those that differ from their data."""
    stale = []
    for name, draw in FIGURES.items():
        stream = io.BytesIO()
        save(draw, stream)
        place = FOLDER / f"{name}.svg"
        if place.is_file() and place.read_bytes() == stream.getvalue():
            continue
        stale.append(name)
        print(
            f"docs/figures/{name}.svg: {'drawn' if write else 'differs from benchmarks/results: make pages'}"
        )
        if write:
            place.write_bytes(stream.getvalue())
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
