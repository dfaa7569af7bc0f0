"""Add your own loss and recipe: python examples/new_loss.py [OUT] [STEPS]"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch.nn.functional import normalize

import opencse
from opencse.losses import LOSSES, Context, Embeddings, Loss, LossOutput

RECIPE = """
extends = "simcse"
title = "SimCSE with a uniformity loss"

[[losses]]
kind = "info_nce"

[[losses]]
kind = "uniformity"
weight = 0.1
"""


@dataclass(frozen=True, kw_only=True)
class Uniformity(Loss):
    """Uniformity of the embeddings on the unit sphere (Wang and Isola, ICML 2020)."""

    kind: ClassVar[str] = "uniformity"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor",)
    anchor: str = "anchor"
    sharpness: float = 2.0

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """Return the logarithm of the mean Gaussian potential over all pairs of rows."""
        vectors = normalize(embeddings[self.anchor][context.rows(present, self.anchor)], dim=-1)
        if len(vectors) < 2:
            return self.zero(embeddings)
        potentials = torch.pdist(vectors).square().mul(-self.sharpness).exp()
        return LossOutput(potentials.mean().log(), {"nearest": potentials.detach().max()})


LOSSES[Uniformity.kind] = Uniformity

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "new-loss-out")), int(arguments.get(2, 30))
    out.mkdir(parents=True, exist_ok=True)
    (out / "uniform.toml").write_text(RECIPE, encoding="utf-8")
    settings = [f"training.max_steps={steps}"]
    run = opencse.train(
        out / "uniform.toml",
        "demo",
        backbone="minilm",
        out=out / "run",
        overwrite=True,
        overrides=settings,
    )
    print((run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
