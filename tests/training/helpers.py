"""Small runs for the tests of the engine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file
from torch.utils.flop_counter import FlopCounterMode

from opencse.debias.strength import BlockEvaluators
from opencse.debias.training import BlockTraining
from opencse.encoder.backbone import Backbone
from opencse.foundation.evaluator import Evaluator, Evaluators
from opencse.losses import Loss, LossOutput
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.rows.token_store import TokenSource, TokenStore, open_token_store
from opencse.text.corpus import Corpus
from opencse.training import loop as loop_module
from opencse.training import trained_model
from opencse.training.callbacks import ActiveRun
from opencse.training.loop import TrainingLoop
from opencse.training.session import RunControl, TrainingSession
from opencse.training.train import TrainingRun, train_encoder

WORDS = "the cat dog bird child man woman sits runs eats sings plays reads in under house garden red blue very".split()


def write_corpus(folder: Path, rows: int = 40, columns: tuple[str, ...] = ("text",)) -> Path:
    """Distinct sentences of varied length; a further column holds other sentences, every fifth of them null."""
    path = folder / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(rows):
            record: dict[str, str | None] = {}
            for c, column in enumerate(columns):
                words = [
                    WORDS[(i * (c + 3) + k * k + c) % len(WORDS)]
                    for k in range(2 + (i * 7 + c) % 9)
                ]
                record[column] = (
                    None if c and i % 5 == 0 else " ".join([*words, WORDS[i % len(WORDS)]])
                )
            file.write(json.dumps(record) + "\n")
    return path


def token_store(folder: Path, columns: tuple[str, ...], encoder: Any) -> TokenStore:
    """The columns of `write_corpus`, tokenised for an encoder; rows may lack all but the text."""
    sources = [TokenSource(column, optional=column != "text") for column in columns]
    return open_token_store(
        Corpus(folder / "corpus.jsonl"), sources, encoder.tokenizer, 20, progress=False
    )


def run(
    corpus: Path,
    backbone: Path,
    out: Path,
    *settings: str,
    recipe: str | Recipe = "simcse",
    variant: str = "sound",
    dev: Evaluator | None = None,
    **options: Any,
) -> TrainingRun:
    """Train for a few steps in fp32 on batches of 8."""
    base = [
        "training.batch_size=8",
        "training.precision=fp32",
        "training.log_every=2",
        "training.checkpoint_every=3",
        "optimizer.lr=1e-3",
    ]
    model = Backbone(backbone)
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(
            recipe, family=model.family, variant=variant, overrides=[*base, *settings]
        )
    callbacks = list(options.pop("callbacks", ()))
    if recipe.block is not None:
        callbacks.append(BlockTraining(recipe.block, BlockEvaluators(), english=True))
    control = RunControl(folder=Path(out), progress=False, callbacks=callbacks, **options)
    return train_encoder(recipe, Corpus(corpus), model, Evaluators(development=dev), control)


def weights(run_folder: Path) -> dict[str, Any]:
    return load_file(run_folder / "model" / "model.safetensors")


def metrics(run_folder: Path) -> list[dict[str, Any]]:
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def interrupt() -> None:
    raise KeyboardInterrupt


def crash_at(
    step: int, monkeypatch: pytest.MonkeyPatch, crash: Callable[[], None] = interrupt
) -> None:
    """Interrupt a run at a step, as Ctrl-C does."""
    original = TrainingLoop.step

    def crashing(self: TrainingLoop, run: ActiveRun) -> Any:
        if run.step == step:
            crash()
        return original(self, run)

    monkeypatch.setattr(TrainingLoop, "step", crashing)


class FakeDev:
    """A development score that rises and falls with the weights, without any data."""

    def start(self, encoder: Any) -> None:
        self.encoder = encoder

    def scores(self) -> dict[str, float]:
        embeddings = self.encoder[0].auto_model.embeddings.word_embeddings.weight
        return {"fake": float(embeddings.detach()[5:9].sum() * 1e4 % 7)}


@dataclass(frozen=True, kw_only=True)
class Imitate(Loss):
    """Squared difference between the student's and a teacher's cosines, and a report of what the teacher said."""

    kind: ClassVar[str] = "imitate"

    other: str = "other"
    teacher: str = "wise"

    @property
    def views(self) -> tuple[str, ...]:
        return ("anchor", self.other)

    @property
    def teachers(self) -> tuple[str, ...]:
        return (self.teacher,)

    def compute(self, embeddings, present, context):
        both = present["anchor"] & present[self.other]

        def cosines(vectors):
            a, b = (F.normalize(vectors[v][both], dim=-1) for v in self.views)
            return a @ b.T

        wise = context.teachers[self.teacher]
        assert all(not wise[v][~present[v]].any() for v in wise)
        loss = (cosines(embeddings) - cosines(wise)).square().mean()
        return LossOutput(loss, {"wise": sum(v.abs().sum() for v in wise.values())})


META = torch.device("meta")


class _AboutToTrain(Exception):
    pass


@contextlib.contextmanager
def as_on_an_accelerator() -> Iterator[None]:
    """Prepare runs as for a device whose batches are laid out on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        begin, build = TrainingSession.__init__, trained_model.loss_modules

        def not_on_a_cpu(self: TrainingSession, *args: Any, **kwargs: Any) -> None:
            begin(self, *args, **kwargs)
            self.on_cpu = False

        patch.setattr(TrainingSession, "__init__", not_on_a_cpu)
        patch.setattr(trained_model, "loss_modules", lambda *args: build(*args[:-1], META))
        yield


def prepare(run: Any) -> TrainingLoop:
    """Call a function that trains, and return the loop that is about to run, as on an accelerator."""
    found: list[TrainingLoop] = []

    def capture(self: TrainingLoop) -> Any:
        found.append(self)
        raise _AboutToTrain

    with as_on_an_accelerator(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "run", capture)
        with pytest.raises(_AboutToTrain):
            run()
    return found[0]


def train_on_meta(loop: TrainingLoop) -> None:
    """Train for three steps on `meta`."""
    with _same_parameters():
        network = loop.network.to(META)
    one: Any = SimpleNamespace(device=META, num_processes=1, process_index=0)
    loop.accelerator = one
    loop.model = network
    network.train()
    # PyTorch's fused AdamW does not know `meta`.
    sgd = torch.optim.SGD([{"params": [*network.parameters()], "peak": 0.1}], lr=0.1)
    with (
        pytest.MonkeyPatch.context() as patch,
        FlopCounterMode(display=False),
        _without_autocast(),
    ):
        patch.setattr(loop_module, "build_optimizer", lambda *_: sgd)
        active = loop.prepare()
        for _ in range(3):
            loop.step(active)


@contextlib.contextmanager
def _same_parameters() -> Iterator[None]:
    """Let modules keep their parameter objects on `meta`, as on a GPU; losses refer to them."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@contextlib.contextmanager
def _without_autocast() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
        patch.setattr(torch, "is_autocast_enabled", lambda *_: False)
        patch.setattr(torch, "get_autocast_dtype", lambda *_: torch.float32)
        yield
