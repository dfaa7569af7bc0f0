"""Draw what is caught and what is hit by mistake, from benchmarks/results/debias-caught.csv.

python benchmarks/debias/caught_figure.py     # docs/figures/debias-caught.svg
"""

from __future__ import annotations

import csv
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks" / "results" / "debias-caught.csv"
FIGURE = ROOT / "docs" / "figures" / "debias-caught.svg"
SCORES = {"reranked": "#1f6feb", "words": "#9aa4b2"}
LABELS = {"reranked": "opencse.Reranker", "words": "negative words and listed antonyms, no model"}
LEFT, WIDTH, BAR, GAP = 230, 360, 9, 12


def share(cell: str) -> float:
    """Return the number of a cell, without its interval."""
    return float(cell.split()[0])


def main() -> None:
    """Write the figure."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    name, should, *_ = rows[0]
    lines = []
    y = 44
    for title, wanted in (
        ("Contradictions lowered, % (more is better)", "yes"),
        ("Same meaning lowered, % (fewer is better)", "no"),
    ):
        lines.append(f'<text x="0" y="{y}" font-weight="bold">{title}</text>')
        y += 14
        for row in rows:
            if row[should] != wanted:
                continue
            middle = y + BAR + 3
            lines.append(
                f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(row[name])}</text>'
            )
            for score, colour in SCORES.items():
                length = WIDTH * share(row[score]) / 100
                lines.append(
                    f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
                )
                lines.append(
                    f'<text x="{LEFT + length + 4:.1f}" y="{y + BAR - 1}" font-size="10">'
                    f"{share(row[score]):.0f}</text>"
                )
                y += BAR + 1
            y += GAP
        y += 14
    legend = []
    for place, (score, colour) in enumerate(SCORES.items()):
        x = LEFT + 150 * place
        legend.append(f'<rect x="{x}" y="8" width="{BAR}" height="{BAR}" fill="{colour}"/>')
        legend.append(f'<text x="{x + 14}" y="16">{LABELS[score]}</text>')
    content = "\n".join([*legend, *lines])
    FIGURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {y}" '
        f'font-family="sans-serif" font-size="12">\n{content}\n</svg>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
