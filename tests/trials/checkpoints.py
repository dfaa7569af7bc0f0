"""Trials of what opencse wrote and reads back: checkpoints and records, damaged and forged, then resumed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.fuzz import mutated
from tests.trials.trial import Expected, Trial
from tests.trials.world import World, not_finite

Change = Callable[[bytes], bytes | None]
CHANGES: dict[str, Change] = {
    "gone": lambda _: None,
    "empty": lambda _: b"",
    "half": lambda b: b[: len(b) // 2],
    "flipped in the middle": lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :],
    "zeros": lambda b: bytes(len(b)),
    "null": lambda _: b"null\n",
    "a list": lambda _: b"[]\n",
    "no keys": lambda _: b"{}\n",
    "nested deep": lambda _: b"[" * 100_000,
}
SAVED = ("network.safetensors", "optimizer.safetensors", "random.safetensors", "state.json", "checksums.json")
RECORDS = ("run.json", "metrics.jsonl", "recipe.toml", "best.safetensors")
STATES = {
    "step": (-1, 0, 10**30, 2.5, "3", None, True),
    "epoch": (-1, 10**30, "x"),
    "best_score": ("x", float("nan"), float("inf"), []),
}
"""Values that a forger may write into `state.json`, whose checksum then fits."""
FORGED = 40
"""How many checkpoints have bytes changed at random and their checksums written anew."""


def trials(world: World) -> Iterator[Trial]:
    """Each file of a stopped run, damaged in every way; the newest checkpoint forged."""
    newest = "checkpoints/step-00000005"
    for file in SAVED:
        for name, change in CHANGES.items():
            yield _resumed(world, f"newest {file} {name}", {f"{newest}/{file}": change}, "works")
        every = {f"checkpoints/{step}/{file}": CHANGES["half"] for step in ("step-00000004", "step-00000005")}
        yield _resumed(world, f"every {file} half", every, "clear")
    for file in RECORDS:
        for name, change in CHANGES.items():
            yield _resumed(world, f"{file} {name}", {file: change}, "either")
    for key, values in STATES.items():
        for value in values:
            forge = {"state.json": lambda b, k=key, v=value: json.dumps({**json.loads(b), k: v}).encode()}
            yield Trial("checkpoints", f"forged {key} {value!r}", _forged(world, forge), "either", check=not_finite)
    for number in range(FORGED):
        file = SAVED[number % 4]
        forge = {file: lambda b, n=number: mutated(b, random.Random(n))}
        yield Trial("checkpoints", f"forged {file} {number}", _forged(world, forge), "either", check=not_finite)


def _resumed(world: World, name: str, changes: dict[str, Change], expected: Expected) -> Trial:
    def prepared(work: Path) -> list[str]:
        folder = world.resume(work)
        for file, change in changes.items():
            damage(folder / file, change)
        return world.go_on

    def same(work: Path) -> str | None:
        ended = (work / "out" / "model" / "model.safetensors").read_bytes()
        whole = (world.encoder / "model.safetensors").read_bytes()
        return None if ended == whole else "ended with other weights than the uninterrupted run"

    return Trial("checkpoints", name, prepared, expected, check=same)


def _forged(world: World, changes: dict[str, Change]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        from opencse.foundation.files import write_checksums

        newest = world.resume(work) / "checkpoints" / "step-00000005"
        for file, change in changes.items():
            damage(newest / file, change)
        (newest / "checksums.json").unlink()
        write_checksums(newest)
        shutil.rmtree(newest.with_name("step-00000004"))
        return world.go_on

    return prepared


def damage(path: Path, change: Change) -> None:
    """Change a file's bytes, or remove it."""
    content = change(path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)
