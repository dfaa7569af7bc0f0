"""What trials start from: a tiny model, a whole corpus, a finished and a stopped run. Made once, copied by each."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.tiny import WORDS, tiny_bert

RECIPE = """
[views.anchor]
[views.twin]
[[terms]]
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
    f"{a} {b}\t{b} {c}\t{i % 6}\n" for i, (a, b, c) in enumerate(zip(WORDS, WORDS[1:], WORDS[2:], strict=False))
)


@dataclass(frozen=True)
class World:
    """Paths of things that are whole.

    Attributes:
        sentences: Forty of them.
        model: A tiny encoder without pooling.
        corpus: A `.txt` of the sentences.
        recipe: Trains in a second.
        building: A recipe that builds a column without any model.
        pairs: Scored pairs.
        encoder: A sentence-transformers folder: the model of a finished run.
        stopped: The folder of a run that was stopped at its fifth step, with two checkpoints.
    """

    sentences: tuple[str, ...]
    model: Path
    corpus: Path
    recipe: Path
    building: Path
    pairs: Path
    encoder: Path
    stopped: Path

    def commands(self) -> dict[str, list[str]]:
        """The arguments of each command that writes a folder, but for the folder."""
        return {
            "train": self.train()[:-4],
            "build": ["build", str(self.building), str(self.corpus), "--workers", "1"],
            "run": ["run", *self.train()[1:-4], "--set", "training.max_steps=1"],
        }

    def train(self, corpus: str | Path | None = None, *more: str, recipe: str | Path | None = None) -> list[str]:
        """The arguments of a short training run into `out`."""
        where = [
            str(self.recipe if recipe is None else recipe),
            str(self.corpus if corpus is None else corpus),
            "--backbone",
            str(self.model),
            "-o",
            "out",
        ]
        return ["train", *where, "--set", "training.max_steps=2", *more]

    def resume(self, work: Path) -> Path:
        """A copy of the stopped run in a trial's folder."""
        return Path(shutil.copytree(self.stopped, work / "out"))

    @property
    def go_on(self) -> list[str]:
        """The arguments that resume it."""
        where = [str(self.recipe), str(self.corpus), "--backbone", str(self.model), "-o", "out"]
        return ["train", *where, "--dev", str(self.pairs), "--resume", "--set", "training.epochs=2"]


def make_world(root: Path) -> World:
    """Make all of it in an empty folder, in a few seconds."""
    rng = random.Random(0)
    sentences = tuple(" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(40))
    files = {"corpus.txt": "\n".join(sentences) + "\n", "recipe.toml": RECIPE, "pairs.tsv": PAIRS}
    files["building.toml"] = RECIPE + '[views.more]\ntext = "more"\n[build.more]\nkind = "deletion"\n'
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    names = ("tiny", "corpus.txt", "recipe.toml", "building.toml", "pairs.tsv", "finished/model", "stopped")
    world = World(sentences, *(root / name for name in names))
    tiny_bert(world.model)
    _train(world, root / "finished", stop_at=None)
    _train(world, world.stopped, stop_at=5)
    return world


def _train(world: World, out: Path, *, stop_at: int | None) -> None:
    import opencse
    from opencse.foundation.errors import Interrupted
    from opencse.training.loop import TrainingLoop

    whole = TrainingLoop._step

    def stopping(loop: TrainingLoop) -> None:
        whole(loop)
        if loop.state.step == stop_at:
            loop.stop.received = True

    TrainingLoop._step = stopping  # type: ignore[method-assign]
    try:
        opencse.train(
            world.recipe,
            world.corpus,
            backbone=world.model,
            out=out,
            dev=world.pairs,
            overrides=["training.epochs=2"],
            progress=False,
        )
    except Interrupted:
        pass
    finally:
        TrainingLoop._step = whole  # type: ignore[method-assign]


def not_finite(folder: Path) -> str | None:
    """What is silently wrong with a run: a model or a result that holds a number that is not finite."""
    import torch
    from safetensors.torch import load_file

    for path in folder.rglob("*.safetensors"):
        if any(t.is_floating_point() and not bool(torch.isfinite(t).all()) for t in load_file(path).values()):
            return f"{path.name} holds a number that is not finite"
    for path in folder.rglob("*.json"):
        if path.name in ("run.json", "results.json", "scores.json"):
            json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} in a result")
