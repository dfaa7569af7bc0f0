"""Draw one search before and after reranking: the picture of README.

    python benchmarks/debias/search_figure.py

Writes benchmarks/results/readme-search.csv and docs/figures/search.svg. The texts were written for
this picture; the README's table says how often such a search goes right.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib
import numpy as np

import opencse
from opencse.encoder import load_encoder

matplotlib.use("svg")
from matplotlib import pyplot

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks" / "results" / "readme-search.csv"
FIGURE = ROOT / "docs" / "figures" / "search.svg"
QUERY = "hotel without a pool"
TEXTS = {
    "The hotel has a large pool.": "wrong",
    "The hotel has a heated pool.": "wrong",
    "There is no swimming pool at this hotel.": "right",
    "The hotel pool is open from May to September.": "wrong",
    "A quiet hotel near the old town.": "other",
}
COLOURS = {"right": "#1a7f37", "wrong": "#cf222e", "other": "#57606a"}


def scores() -> list[tuple[str, float, float]]:
    """Return each text with its cosine by all-MiniLM-L6-v2 and its score by the reranker."""
    texts = list(TEXTS)
    vectors = load_encoder("minilm").encode([QUERY, *texts], normalize_embeddings=True)
    cosines = vectors[1:] @ vectors[0]
    reranked = opencse.Reranker("minilm").predict([(QUERY, text) for text in texts])
    return [
        (text, float(cosine), float(score))
        for text, cosine, score in zip(texts, cosines, reranked, strict=True)
    ]


def draw(rows: list[tuple[str, float, float]]) -> None:
    """Draw both orders of the texts, with a line from the old place of each to the new one."""
    matplotlib.rcParams["svg.hashsalt"] = "search"
    figure, axes = pyplot.subplots(figsize=(9, 2.9))
    before = np.argsort([-cosine for _, cosine, _ in rows])
    after = np.argsort([-score for _, _, score in rows])
    for row, (text, cosine, score) in enumerate(rows):
        colour = COLOURS[TEXTS[text]]
        left = -int(np.flatnonzero(before == row)[0])
        right = -int(np.flatnonzero(after == row)[0])
        weight = "bold" if TEXTS[text] == "right" else "normal"
        axes.plot([0, 1], [left, right], color=colour, marker="o", linewidth=2)
        for x, y, value, align in ((-0.06, left, cosine, "right"), (1.06, right, score, "left")):
            label = f"{text}  {value:.2f}" if align == "right" else f"{value:.2f}  {text}"
            axes.text(x, y, label, ha=align, va="center", color=colour, weight=weight, size=9)
    axes.text(-0.06, 0.9, "before: all-MiniLM-L6-v2, cosine", ha="right", size=9, color="#1f2328")
    axes.text(1.06, 0.9, "after: opencse.Reranker", ha="left", size=9, color="#1f2328")
    axes.text(0.5, 1.8, f"Search: {QUERY}", ha="center", size=10, color="#1f2328", weight="bold")
    axes.set_xlim(-2.6, 3.6)
    axes.set_ylim(-len(rows) + 0.5, 2.2)
    axes.axis("off")
    figure.savefig(
        FIGURE, bbox_inches="tight", facecolor="white", metadata={"Date": None, "Title": QUERY}
    )


def main() -> None:
    """Score the texts, write the table and draw it."""
    rows = scores()
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["hotel without a pool", "cosine", "reranked"])
        writer.writerows([text, f"{cosine:.2f}", f"{score:.2f}"] for text, cosine, score in rows)
    draw(rows)


if __name__ == "__main__":
    main()
