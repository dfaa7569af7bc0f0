"""Trials of what opencse wrote and reads back: the records of a run, and every checkpoint, damaged and then resumed.

One damaged or forged checkpoint is tried in tests/training/test_checkpoint.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import World

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


def trials(world: World) -> Iterator[Trial]:
    """Each record of a stopped run, damaged in every way; a file of all its checkpoints, cut."""
    for file in SAVED:
        every = {f"checkpoints/{step}/{file}": CHANGES["half"] for step in ("step-00000004", "step-00000005")}
        yield _resumed(world, f"every {file} half", every, "clear")
    for file in RECORDS:
        for name, change in CHANGES.items():
            yield _resumed(world, f"{file} {name}", {file: change}, "either")


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


def damage(path: Path, change: Change) -> None:
    """Change a file's bytes, or remove it."""
    content = change(path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)
