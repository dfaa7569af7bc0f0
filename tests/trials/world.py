"""What trials start from: a tiny model, a whole corpus and a finished run, made once."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opencse
from tests.tiny import WORDS, tiny_bert

RECIPE = """
[views.anchor]
[views.twin]
[[losses]]
kind = "info_nce"
anchor = "anchor"
positive = "twin"
[encoder]
pooling = "cls"
max_length = 16
[training]
batch_size = 8
precision = "fp32"
checkpoint_every = 2
log_every = 1
[selection]
every = 2
"""
PAIRS = "sentence1\tsentence2\tscore\n" + "".join(
    f"{a} {b}\t{b} {c}\t{i % 6}\n"
    for i, (a, b, c) in enumerate(zip(WORDS, WORDS[1:], WORDS[2:], strict=False))
)


@dataclass(frozen=True)
class World:
    """Paths of things that are whole.

    Attributes:
        model: A tiny encoder without pooling.
        corpus: A `.txt` of forty sentences.
        recipe: Trains in a second.
        building: A recipe that builds a column without any model.
        pairs: Scored pairs.
        encoder: A sentence-transformers folder: the model of a finished run.
    """

    model: Path
    corpus: Path
    recipe: Path
    building: Path
    pairs: Path
    encoder: Path

    def commands(self) -> dict[str, list[str]]:
        """The arguments of each command that writes a folder, but for the folder."""
        return {
            "train": self.train()[:-4],
            "build": ["build", str(self.building), str(self.corpus), "--workers", "1"],
            "run": ["run", *self.train()[1:-4], "--set", "training.max_steps=1"],
        }

    def train(self) -> list[str]:
        """The arguments of a short training run into `out`."""
        where = [str(self.recipe), str(self.corpus), "--backbone", str(self.model), "-o", "out"]
        return ["train", *where, "--set", "training.max_steps=2"]


def make_world(root: Path) -> World:
    """Make all of it in an empty folder, in a few seconds."""
    rng = random.Random(0)
    sentences = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(40)]
    files = {"corpus.txt": "\n".join(sentences) + "\n", "recipe.toml": RECIPE, "pairs.tsv": PAIRS}
    files["building.toml"] = (
        RECIPE + '[views.more]\ntext = "more"\n[build.more]\nkind = "deletion"\n'
    )
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    names = ("tiny", "corpus.txt", "recipe.toml", "building.toml", "pairs.tsv", "finished/model")
    world = World(*(root / name for name in names))
    settings: dict[str, Any] = {
        "backbone": tiny_bert(world.model),
        "dev": world.pairs,
        "progress": False,
    }
    opencse.train(
        world.recipe,
        world.corpus,
        out=root / "finished",
        overrides=["training.epochs=2"],
        **settings,
    )
    return world
