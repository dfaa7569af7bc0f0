"""Generated trials: one file of each format that is read, changed at random, through the command that reads it."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.files import parquet
from tests.trials.trial import Trial
from tests.trials.world import World, not_finite


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The same bytes after one to four changes: flips, cuts, repetitions, insertions, exchanges."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 8, 64, 1000)))
        kind = rng.choice(("flip", "cut", "truncate", "repeat", "insert", "zero", "splice"))
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del data[at:end]
        elif kind == "truncate":
            del data[at:]
        elif kind == "repeat":
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
        elif kind == "insert":
            data[at:at] = rng.choice(
                (b"\0", b"\xff", b'"', b"\n", b"[", b"{", b"9" * 30, b"\xed\xa0\x80", b"nan", b"-1")
            )
        elif kind == "zero":
            data[at:end] = bytes(end - at)
        else:
            other = rng.randrange(len(data) + 1)
            data[at:end] = data[other : other + end - at]
    return bytes(data)


def trials(world: World, *, seed: int, count: int) -> Iterator[Trial]:
    """So many trials, spread evenly over the formats."""
    makers = list(_makers(world).items())
    for number in range(count):
        name, make = makers[number % len(makers)]
        rng = random.Random(f"{seed} {number}")
        yield Trial("generated", f"{name} {seed}.{number}", make(rng), check=not_finite, generated=True)


Maker = Callable[[random.Random], Callable[[Path], list[str]]]


def _makers(world: World) -> dict[str, Maker]:
    text = world.corpus.read_bytes()
    lines = "".join(json.dumps({"text": s}) + "\n" for s in world.sentences).encode()
    corpora = {
        "c.txt": text,
        "c.txt.gz": gzip.compress(text, mtime=0),
        "c.jsonl": lines,
        "c.csv": b"text\n" + text,
        "c.tsv": b"text\n" + text,
        "c.parquet": parquet({"text": list(world.sentences)}),
    }
    checkpoint = "checkpoints/step-00000005/"
    files = [checkpoint + f for f in ("network.safetensors", "state.json", "checksums.json")]
    files += ["run.json", "metrics.jsonl", "best.safetensors"]
    models = ("model.safetensors", "config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json")
    return {
        **{f"corpus {name}": _corpus(world, name, content) for name, content in corpora.items()},
        "recipe": _recipe(world),
        "pairs": _pairs(world),
        **{f"run's {name}": _resumed(world, name) for name in files},
        **{f"model's {name}": _model(world, name) for name in models},
    }


def _corpus(world: World, name: str, content: bytes) -> Maker:
    def make(rng: random.Random) -> Callable[[Path], list[str]]:
        changed = mutated(content, rng)

        def prepared(work: Path) -> list[str]:
            (work / name).write_bytes(changed)
            return world.train(name)

        return prepared

    return make


def _recipe(world: World) -> Maker:
    def make(rng: random.Random) -> Callable[[Path], list[str]]:
        changed = mutated(world.recipe.read_bytes(), rng)

        def prepared(work: Path) -> list[str]:
            (work / "mine.toml").write_bytes(changed)
            return world.train(recipe="mine.toml")

        return prepared

    return make


def _pairs(world: World) -> Maker:
    def make(rng: random.Random) -> Callable[[Path], list[str]]:
        changed = mutated(world.pairs.read_bytes(), rng)

        def prepared(work: Path) -> list[str]:
            (work / "mine.tsv").write_bytes(changed)
            return ["evaluate", str(world.encoder), "--pairs", "mine.tsv", "--format", "json", "-o", "scores.json"]

        return prepared

    return make


def _resumed(world: World, file: str) -> Maker:
    def make(rng: random.Random) -> Callable[[Path], list[str]]:
        def prepared(work: Path) -> list[str]:
            path = world.resume(work) / file
            path.write_bytes(mutated(path.read_bytes(), rng))
            return world.go_on

        return prepared

    return make


def _model(world: World, file: str) -> Maker:
    def make(rng: random.Random) -> Callable[[Path], list[str]]:
        def prepared(work: Path) -> list[str]:
            path = Path(shutil.copytree(world.encoder, work / "model")) / file
            path.write_bytes(mutated(path.read_bytes(), rng))
            return ["evaluate", "model", "--pairs", str(world.pairs), "--format", "json", "-o", "scores.json"]

        return prepared

    return make
