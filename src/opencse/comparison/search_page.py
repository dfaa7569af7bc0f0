"""The page on which a person judges whose list of hits is better, without knowing whose it is."""

from __future__ import annotations

import random
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

import opencse
from opencse.comparison.top_hits import SearchComparison, SearchPair
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.reports.palette import DARK, LIGHT
from opencse.reports.text import shown

_JUDGED = 40  # queries on the page
_SHOWN = 5  # hits of each list


def write_search_comparison(found: SearchComparison, out: str | Path) -> Path:
    """Write `search.html`, to judge in a browser, and `search.json` with every list.

    Args:
        found: What `compare_searches` returned.
        out: A folder.

    Returns:
        The page.
    """
    out = Path(out)
    if out.is_file():
        raise OpencseError(f"{out} is a file, not a folder", "Choose another output folder.")
    write_json(out / "search.json", {"version": opencse.__version__, **found.to_dict()})
    write_text(out / "search.html", render_search_comparison(found))
    return out / "search.html"


def render_search_comparison(found: SearchComparison, *, seed: int = 0) -> str:
    """Return the page; which model stands on the left is drawn anew for each query.

    Args:
        found: What `compare_searches` returned.
        seed: Of the sides.
    """
    environment = Environment(
        loader=PackageLoader("opencse.reports", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown)
    rng = random.Random(seed)
    changed = [pair for pair in found.lists if _differ(pair)][:_JUDGED]
    swapped = [rng.random() < 0.5 for _ in changed]
    return environment.get_template("search.html.j2").render(
        found=found,
        lists=[
            (pair, (pair.new, pair.old) if swap else (pair.old, pair.new))
            for pair, swap in zip(changed, swapped, strict=True)
        ],
        data=[_record(pair, swap) for pair, swap in zip(changed, swapped, strict=True)],
        shown_hits=_SHOWN,
        light=LIGHT.variables(),
        dark=DARK.variables(),
        version=opencse.__version__,
    )


def _differ(pair: SearchPair) -> bool:
    return [hit.text for hit in pair.old[:_SHOWN]] != [hit.text for hit in pair.new[:_SHOWN]]


def _record(pair: SearchPair, swap: bool) -> dict[str, str]:
    """Return what a judgement is written with: for each side, the first hit that the other list has lower or not."""
    old = next(hit.text for hit in pair.old if hit.other_rank is None or hit.other_rank != pair.old.index(hit) + 1)
    new = next(hit.text for hit in pair.new if hit.other_rank is None or hit.other_rank != pair.new.index(hit) + 1)
    left, right = (new, old) if swap else (old, new)
    return {"query": pair.query, "left": left, "right": right, "new": "left" if swap else "right"}
