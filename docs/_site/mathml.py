"""Formulas as MathML, which every browser draws by itself: no script, no font and no request to another host."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula that stands in a line of text."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
