"""Colours by use, for figures that follow the light or dark theme of the page."""

from __future__ import annotations

from dataclasses import dataclass, fields

MODELS = 6
"""Number of models with a colour of their own; further models reuse the colours with another marker."""


@dataclass(frozen=True)
class Palette:
    """Colours of one theme.

    Attributes:
        ink: Text and important marks.
        muted: Secondary text, published figures.
        grid: Thin lines.
        panel: Background of figures.
        good: Paraphrases and positives.
        bad: Negations and negatives.
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
        """Return the colours as CSS custom properties, by name."""
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
# Placeholders that matplotlib writes unchanged and that `drawing.inline` replaces by CSS variables.
PLACEHOLDER = Palette(
    ink="#010101",
    muted="#010102",
    grid="#010103",
    panel="#010104",
    good="#010105",
    bad="#010106",
    series=tuple(f"#01020{index}" for index in range(MODELS)),
)
