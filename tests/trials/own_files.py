"""Trials of files that opencse wrote and reads back: checkpoints, records, logs, views and cache, each damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.folders import _words
from tests.trials.trial import Trial
from tests.trials.world import World, not_finite

Change = Callable[[bytes], bytes | None]
CHANGES: dict[str, Change] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "half": lambda b: b[: len(b) // 2],
    "flipped in the middle": lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :],
    "flipped at its end": lambda b: b[:-3] + bytes([b[-3] ^ 1]) + b[-2:],
    "zeros": lambda b: bytes(len(b)),
    "text": lambda _: b"hello\n",
    "binary": lambda _: bytes(range(256)),
    "null": lambda _: b"null\n",
    "a list": lambda _: b"[]\n",
    "no keys": lambda _: b"{}\n",
    "nested deep": lambda _: b"[" * 100_000,
}
CHECKPOINT = ("network.safetensors", "optimizer.safetensors", "random.safetensors", "state.json", "checksums.json")
RECORDS = ("run.json", "metrics.jsonl", "recipe.toml", "environment.json", "best.safetensors")


def trials(world: World) -> Iterator[Trial]:
    """Every file of a stopped run, damaged in every way, then resumed; finished runs compared; views and cache."""
    for file in CHECKPOINT:
        for name, change in CHANGES.items():
            newest = f"checkpoints/step-00000005/{file}"
            yield _resumed(world, f"newest {file} {name}", {newest: change}, "works")
        every = {f"checkpoints/{step}/{file}": CHANGES["half"] for step in ("step-00000004", "step-00000005")}
        yield _resumed(world, f"every {file} half", every, "clear")
    for file in RECORDS:
        for name, change in CHANGES.items():
            yield _resumed(world, f"{file} {name}", {file: change}, "either")
    for file in ("run.json", "metrics.jsonl", "recipe.toml"):
        for name, change in CHANGES.items():
            yield Trial("own files", f"compare: {file} {name}", _compared(world, file, change), "either")
    for name, change in CHANGES.items():
        yield Trial("own files", f"finished run.json {name}", _again(world, change), "either")
        yield Trial("own files", f"views {name}", _views(world, change), "either")
        yield Trial("own files", f"cache {name}", _cache(world, change), "works", check=not_finite)


def _resumed(world: World, name: str, changes: dict[str, Change], expected: str) -> Trial:
    def prepared(work: Path) -> list[str]:
        folder = world.resume(work)
        for file, change in changes.items():
            damage(folder / file, change)
        return world.go_on

    def same(work: Path) -> str | None:
        weights = _weights(work / "out" / "model")
        return None if weights == _weights(world.encoder) else "ended with other weights than the uninterrupted run"

    return Trial("own files", name, prepared, expected, check=same)  # type: ignore[arg-type]


def damage(path: Path, change: Change) -> None:
    """Change a file's bytes, or remove it."""
    content = change(path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)


def _weights(folder: Path) -> bytes:
    return next(folder.rglob("model.safetensors")).read_bytes()


def _compared(world: World, file: str, change: Change) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        shutil.copytree(world.finished, work / "a")
        damage(work / "a" / file, change)
        return ["compare", "a", str(world.finished)]

    return prepared


def _again(world: World, change: Change) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        shutil.copytree(world.finished, work / "out")
        damage(work / "out" / "run.json", change)
        return world.go_on

    return prepared


def _views(world: World, change: Change) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        from opencse.recipes import load_recipe
        from opencse.views import build_views

        recipe = _words(world)
        build_views(world.corpus, load_recipe(recipe).build, work / "out", workers=1, progress=False)
        damage(next((work / "out").glob("part-*")), change)
        return ["build", str(recipe), str(world.corpus), "--workers", "1", "-o", "out"]

    return prepared


def _cache(world: World, change: Change) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        from opencse.pipeline.train import train

        train(
            world.recipe,
            world.corpus,
            backbone=world.model,
            out=work / "first",
            overrides=["training.max_steps=1"],
            progress=False,
        )
        for path in (work.parent / "cache").rglob("*.ids"):
            damage(path, change)
        return world.train()

    return prepared
