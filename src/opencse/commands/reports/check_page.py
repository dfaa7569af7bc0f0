"""The page of `opencse check`: examples first, then the numbers."""

from __future__ import annotations

from pathlib import Path

from opencse.commands.reports.templates import render_template, write_page
from opencse.evaluation.check.text_check import TextCheck

_EXAMPLES = 12


def write_check(result: TextCheck, out: str | Path) -> Path:
    """Write `check.html`, one file that needs nothing else, and `check.json` with every number.

    Args:
        result: The result of `opencse.check`.
        out: A folder.

    Returns:
        The path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    return write_page(out, "check", render_check(result), result.to_dict())


def render_check(result: TextCheck) -> str:
    """Return the page as text; the user's texts in it are escaped and clipped."""
    return render_template("check.html.j2", result=result, examples=result.examples[:_EXAMPLES])
