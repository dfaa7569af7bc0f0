"""Train a loss that learns its temperature: python examples/loss_with_parameters.py [OUT] [STEPS]"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch.nn.functional import cross_entropy, normalize

import opencse
from opencse.losses import (
    LOSSES,
    Context,
    Embeddings,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
)

RECIPE = """
extends = "simcse"
title = "SimCSE with a learned temperature"

[[losses]]
kind = "learned_temperature"
"""


class Temperature(LossModule):
    """The logarithm of a temperature, which keeps it positive."""

    learning_rate = 1e-3

    def __init__(self, start: float) -> None:
        super().__init__()
        self.log = torch.nn.Parameter(torch.tensor(math.log(start)))


@dataclass(frozen=True, kw_only=True)
class LearnedTemperatureLoss(Loss):
    """InfoNCE whose temperature is trained with the encoder."""

    kind: ClassVar[str] = "learned_temperature"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive")
    anchor: str = "anchor"
    positive: str = "twin"
    start: float = 0.05

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the parameter."""
        return Temperature(self.start)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """Return the cross-entropy of finding each positive among all positives."""
        rows = context.rows(present, *self.views)
        if len(rows) < 2:
            return self.zero(embeddings)
        anchors = normalize(embeddings[self.anchor][rows], dim=-1)
        positives = normalize(embeddings[self.positive][rows], dim=-1)
        temperature = context.modules[self.name].log.exp()
        labels = torch.arange(len(rows), device=anchors.device)
        value = cross_entropy(anchors @ positives.T / temperature, labels)
        return LossOutput(value, {"temperature": temperature.detach()})


LOSSES["learned_temperature"] = LearnedTemperatureLoss

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "learned-out")), int(arguments.get(2, 30))
    out.mkdir(parents=True, exist_ok=True)
    recipe = out / "learned.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    run = opencse.train(
        recipe,
        "demo",
        backbone="minilm",
        out=out / "run",
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print((run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
