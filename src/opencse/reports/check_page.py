"""The page of `opencse check`: examples first, then the numbers."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

import opencse
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.probing.estimates import Estimate
from opencse.probing.text_check import TextCheck, percent, span
from opencse.reports.palette import DARK, LIGHT
from opencse.reports.text import shown

_EXAMPLES = 12


def write_check(found: TextCheck, out: str | Path) -> Path:
    """Write `check.html`, one file that needs nothing else, and `check.json` with every number.

    Args:
        found: What `opencse.probing.check` returned.
        out: A folder.

    Returns:
        The page.
    """
    out = Path(out)
    if out.is_file():
        raise OpencseError(f"{out} is a file, not a folder", "Choose another output folder.")
    write_json(out / "check.json", {"version": opencse.__version__, **found.to_dict()})
    write_text(out / "check.html", render_check(found))
    return out / "check.html"


def render_check(found: TextCheck) -> str:
    """Return the page as text; the user's texts in it are escaped and clipped."""
    environment = Environment(
        loader=PackageLoader("opencse.reports", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, percent=percent, span=span, undefined=_reason)
    return environment.get_template("check.html.j2").render(
        found=found,
        examples=found.examples[:_EXAMPLES],
        light=LIGHT.variables(),
        dark=DARK.variables(),
        version=opencse.__version__,
    )


def _reason(estimate: Estimate) -> str:
    return estimate.undefined or "–"
