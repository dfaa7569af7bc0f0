"""Colours, named by use, for pictures that follow the page from light to dark."""

from __future__ import annotations

from dataclasses import dataclass, fields

MODELS = 6
"""So many models have a colour of their own; further ones begin again, and differ by marker only."""


@dataclass(frozen=True)
class Palette:
    """Colours of one theme.

    Attributes:
        ink: Text and important marks.
        muted: Secondary text, published figures.
        grid: Thin lines.
        panel: What pictures stand on.
        good: Paraphrases: alike in meaning.
        bad: Negations: not alike in meaning.
        series: One colour per model.
    """

    ink: str
    muted: str
    grid: str
    panel: str
    good: str
    bad: str
    series: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        """Names and values as CSS custom properties."""
        single = {f"--{f.name}": getattr(self, f.name) for f in fields(self) if f.name != "series"}
        return single | {f"--m{index}": colour for index, colour in enumerate(self.series)}


LIGHT = Palette(
    ink="#1c2430",
    muted="#667080",
    grid="#dfe3e8",
    panel="#ffffff",
    good="#1f7a5c",
    bad="#b8432f",
    series=("#2563a8", "#c2661a", "#5b7f2b", "#83509c", "#0f7f86", "#a13a63"),
)
DARK = Palette(
    ink="#e8ebf0",
    muted="#9aa4b2",
    grid="#323b47",
    panel="#1b212a",
    good="#5cc39c",
    bad="#ee8c78",
    series=("#78b0ee", "#eea35c", "#a5cb70", "#c698de", "#5fc7cd", "#e88bb0"),
)
# Stand-ins that matplotlib writes as they are, and that `svg.inline` replaces by the CSS variables.
STAND_IN = Palette(
    ink="#010101",
    muted="#010102",
    grid="#010103",
    panel="#010104",
    good="#010105",
    bad="#010106",
    series=tuple(f"#01020{index}" for index in range(MODELS)),
)
