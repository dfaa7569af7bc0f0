"""The page of a blind comparison: a person judges which list of hits is better without knowing the model."""

from __future__ import annotations

import random
from pathlib import Path

from opencse.commands.comparison.top_hits import SearchComparison, SearchPair
from opencse.commands.reports.templates import render_template, write_page

_JUDGED = 40  # queries on the page
_SHOWN = 5  # hits of each list


def write_search_comparison(result: SearchComparison, out: str | Path) -> Path:
    """Write `search.html`, to judge in a browser, and `search.json` with every list.

    Args:
        result: The result of `compare_searches`.
        out: A folder.

    Returns:
        The path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    return write_page(out, "search", render_search_comparison(result), result.to_dict())


def render_search_comparison(result: SearchComparison, *, seed: int = 0) -> str:
    """Return the page; for each query, the model on the left is drawn at random.

    Args:
        result: The result of `compare_searches`.
        seed: Seed of that draw.
    """
    rng = random.Random(seed)
    changed = [pair for pair in result.lists if _differ(pair)][:_JUDGED]
    swapped = [rng.random() < 0.5 for _ in changed]
    return render_template(
        "search.html.j2",
        result=result,
        lists=[
            (pair, (pair.new, pair.old) if swap else (pair.old, pair.new))
            for pair, swap in zip(changed, swapped, strict=True)
        ],
        data=[_record(pair, swap) for pair, swap in zip(changed, swapped, strict=True)],
        shown_hits=_SHOWN,
    )


def _differ(pair: SearchPair) -> bool:
    return [hit.text for hit in pair.old[:_SHOWN]] != [hit.text for hit in pair.new[:_SHOWN]]


def _record(pair: SearchPair, swap: bool) -> dict[str, str]:
    """Return the data of a judgement: for each side, the first hit that has another rank in the other list."""
    old = next(hit.text for hit in pair.old if hit.other_rank is None or hit.other_rank != pair.old.index(hit) + 1)
    new = next(hit.text for hit in pair.new if hit.other_rank is None or hit.other_rank != pair.new.index(hit) + 1)
    left, right = (new, old) if swap else (old, new)
    return {"query": pair.query, "left": left, "right": right, "new": "left" if swap else "right"}
