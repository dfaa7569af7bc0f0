"""Trials of recipes and settings: TOML that is none, values of wrong types and out of range, recipes that loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Trial, made, with_file
from tests.trials.world import RECIPE, World

DEEP = 1500
TEXT = RECIPE.encode()
FILES = {
    "empty": b"",
    "UTF-16": RECIPE.encode("utf-16"),
    "binary": bytes(range(256)),
    "arrays nested deep": TEXT + b"x = " + b"[" * DEEP + b"]" * DEEP,
    "tables nested deep": TEXT + b"x = " + b"{a=" * DEEP + b"1" + b"}" * DEEP,
    "header deep": TEXT + b"[" + b".".join([b"a"] * DEEP) + b"]\n",
    "integer of 5,000 digits": TEXT + b"x = " + b"1" * 5000,
    "integer of 30 digits": TEXT.replace(b"= 8", b"= " + b"8" * 30),
    "date out of range": TEXT.replace(b"= 8", b"= 1979-13-77"),
    "key twice": TEXT + TEXT,
    "open string": TEXT + b'title = "',
    "larger than 1 MiB": TEXT + b"# comment\n" * 200_000,
    "a line of 10 MB": b"#" * 10_000_000,
    "no views": b'[[terms]]\nkind = "info_nce"\n',
    "terms of numbers": b"terms = [1, 2]\n",
    "kind unknown": b'[[terms]]\nkind = "magic"\n',
}
EXTENDS = {
    "itself": '"mine.toml"',
    "nothing": '"none.toml"',
    "a device": '"/dev/zero.toml"',
    "a number": "3",
    "a folder": '"../work"',
    "with a NUL": '"a\\u0000.toml"',
    "a long name": f'"{"a" * 5000}.toml"',
}
TABLES = (
    *("[for]\nother = 3\n", "[for.other]\noptimizer = [1]\n", '[for.other.terms."²"]\nweight = 3\n'),
    *("[for.other.terms.-1]\nweight = 3\n", '[build.x]\nkind = "magic"\n', "[build.x]\nrate = 3\n"),
    *("[corpus.parts.x]\nrows = -3\n", "[published]\nother = nan\n", '[views.""]\ntext = 3\n', "[with]\nx = 3\n"),
)
NUMBERS = ("nan", "inf", "-1", "1e308", "1" * 5000, '"1"', "[nan]", "{}")
KEYS = ("optimizer.lr", "training.batch_size", "terms.info_nce.temperature", "encoder.max_length", "encoder.dropout")
OVERRIDES = (
    *("", "=", "x", "x=", ".=1", "a..b=1", "terms=3", "training.seed=4294967296", "optimizer.betas=[nan, 0.9]"),
    *(".".join(["a"] * 2000) + "=1", "x=" + "[" * 2000, "views.anchor.text=../../x", "views.anchor.text=a\0b"),
)
OPTIONS = {
    "--seeds": ("", "x", "1,1", "5-1", "²", "1-2-3", "9" * 40, "0-4294967295"),
    "--seed": ("-1", "4294967296", "1e3", "9" * 30),
    "--variant": ("", "loud", "sound\n"),
}
NAMES = ("", "magic", "../simcse", "none.toml", "/dev/zero", "a\0b.toml", "x" * 5000 + ".toml", "/")
PLACES: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a loop": lambda path: path.symlink_to(path),
    "sparse": lambda path: path.open("wb").truncate(2**36),
}


def trials(world: World) -> Iterator[Trial]:
    """Broken recipe files; `--set`, seeds and names; odd places of a recipe."""
    train, mine = world.train(), world.train(recipe="mine.toml")
    contents = FILES | {f"extends {name}": f"extends = {value}\n".encode() for name, value in EXTENDS.items()}
    for name, content in contents.items():
        yield Trial("recipes", f"file: {name}", with_file("mine.toml", content, mine), "clear")
    for text in TABLES:
        yield Trial("recipes", f"table {text!r}", with_file("mine.toml", TEXT + text.encode(), mine), "clear")
    for text in (*OVERRIDES, *(f"{key}={value}" for key in KEYS for value in NUMBERS)):
        yield Trial("recipes", f"--set {text[:60]!r}", lambda _, t=text: [*train, "--set", t], "either")
    for option, values in OPTIONS.items():
        for text in values:
            yield Trial("recipes", f"{option} {text!r}", lambda _, o=option, t=text: [*train, o, t], "clear")
    for text in NAMES:
        yield Trial("recipes", f"called {text[:30]!r}", lambda _, t=text: world.train(recipe=t), "clear")
    for name, make in PLACES.items():
        yield Trial("recipes", f"place: {name}", made(make, "mine.toml", mine), "clear")
