"""Draw one search before and after reranking: the picture of README.

    python benchmarks/debias/search_figure.py
    python benchmarks/debias/search_figure.py --draw    # from the table, without a model

Writes benchmarks/results/readme-search.csv and docs/figures/search.svg. The texts were written for
this picture; the README's table says how often such a search goes right.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib

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
COLORS = {"right": "#1a7f37", "wrong": "#cf222e", "other": "#57606a"}
MARKS = {"right": "✓", "wrong": "✗", "other": "–"}


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
    """Draw both lists of hits, one above the other, so that a phone can show them; a bar is a score."""
    matplotlib.rcParams["svg.hashsalt"] = "search"
    figure, both = pyplot.subplots(2, 1, figsize=(6, 4.3))
    titles = ("before: all-MiniLM-L6-v2, cosine similarity", "after: opencse.Reranker")
    for axes, title, column in zip(both, titles, (1, 2), strict=True):
        ordered = sorted(rows, key=lambda row: -row[column])
        for place, row in enumerate(ordered):
            kind = TEXTS[row[0]]
            score = row[column]
            axes.barh(place, score, height=0.8, color=COLORS[kind], alpha=0.16)
            weight = "bold" if kind == "right" else "normal"
            label = f"{MARKS[kind]} {score:.2f}  {row[0]}"
            axes.text(0.01, place, label, va="center", color=COLORS[kind], weight=weight, size=11)
        axes.set_title(title, loc="left", size=11, color="#1f2328")
        axes.set_xlim(0, 0.8)
        axes.set_ylim(len(ordered) - 0.5, -0.5)
        axes.axis("off")
    figure.suptitle(f"Search: {QUERY}", x=0.02, ha="left", size=12, weight="bold", color="#1f2328")
    figure.tight_layout()
    figure.savefig(
        FIGURE, bbox_inches="tight", facecolor="white", metadata={"Date": None, "Title": QUERY}
    )


def written() -> list[tuple[str, float, float]]:
    """Return the scores of the table, to draw it without a model."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [(text, float(cosine), float(score)) for text, cosine, score in rows]


def main() -> None:
    """Score the texts, write the table and draw it."""
    if "--draw" in sys.argv:
        draw(written())
        return
    rows = scores()
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["hotel without a pool", "cosine", "reranked"])
        writer.writerows([text, f"{cosine:.2f}", f"{score:.2f}"] for text, cosine, score in rows)
    draw(rows)


if __name__ == "__main__":
    main()
