"""Use your own text view as a positive: python examples/text_view.py [OUT] [STEPS]"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import opencse
from opencse.text.views.registry import VIEWS, OpenedView, SourceRow, View, ViewText

RECIPE = """
extends = "simcse"
title = "SimCSE with the beginning of each sentence as its positive"

[build.beginning]
kind = "first_words"
share = 0.7

[losses.info_nce]
positive = "beginning"
"""


@dataclass(frozen=True, kw_only=True)
class FirstWords(View):
    """The first words of a sentence."""

    kind: ClassVar[str] = "first_words"
    share: float = 0.5

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return what builds the texts of some rows."""
        return OpenedView(build=self.shortened)

    def shortened(self, rows: Sequence[SourceRow]) -> list[ViewText]:
        """Return the first words of each row; None if it is too short."""
        views = []
        for row in rows:
            words = row.text.split()
            kept = " ".join(words[: round(self.share * len(words))])
            view = ViewText(text=kept, rule="cut")
            if len(words) < 4:
                view = ViewText(text=None, rule="too short")
            views.append(view)
        return views


VIEWS["first_words"] = FirstWords

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "text-view-out")), int(arguments.get(2, 30))
    out.mkdir(parents=True, exist_ok=True)
    recipe = out / "beginnings.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    settings = [f"training.max_steps={steps}"]
    run = opencse.run(recipe, "demo", out=out / "run", overwrite=True, overrides=settings)
    print(run)
