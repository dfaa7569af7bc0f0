"""Pages from Jinja templates: one environment, and one way to write a page beside its data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.drawing import DARK, LIGHT, NO_FIGURES, can_draw
from opencse.commands.reports.text import shown
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.version import __version__


def render_template(name: str, **values: Any) -> str:
    """Return a page as text; every value in it is escaped unless it is `Markup` or a `Table`.

    Args:
        name: Template file in this folder.
        **values: Variables of the template, beside `light`, `dark`, `version` and `no_figures`.
    """
    environment = Environment(
        loader=PackageLoader("opencse.commands.reports", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    palettes = {"light": LIGHT.variables(), "dark": DARK.variables()}
    fixed = {"version": __version__, "no_figures": "" if can_draw() else NO_FIGURES}
    return environment.get_template(name).render(**palettes, **fixed, **values)


def output_folder(out: str | Path) -> Path:
    """Return the path of an output folder.

    Raises:
        OpencseError: It is a file.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise OpencseError(f"{out} is a file, not a folder", "Choose another output folder.")
    return out


def write_page(out: str | Path, name: str, page: str, data: Mapping[str, Any], file: str = "") -> Path:
    """Write the data and the version as `NAME.json`, or as `file`, then `NAME.html`; return the path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    out = output_folder(out)
    write_json(out / (file or f"{name}.json"), {"version": __version__, **data})
    write_text(out / f"{name}.html", page)
    return out / f"{name}.html"
