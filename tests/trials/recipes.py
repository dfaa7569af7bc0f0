"""Trials of recipes and settings: TOML that is none, values of wrong types and out of range, recipes that loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import RECIPE, World

DEEP = 1500
NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1e308", "-0.0", "1" * 5000, "1" * 30, "true", '"1"', "[]", "{}", "[nan]")


def trials(world: World) -> Iterator[Trial]:
    """Broken recipe files, broken tables, `--set` and seeds."""
    for name, content in _files().items():
        yield Trial("recipes", f"file: {name}", _file(world, content), _expected(name))
    for name, text in _tables().items():
        yield Trial("recipes", f"table: {name}", _file(world, (RECIPE + text).encode()), "clear")
    for text in _overrides():
        yield Trial("recipes", f"--set {text[:60]}", _set(world, text))
    for name, arguments in _arguments(world).items():
        yield Trial("recipes", name, _command(arguments), "clear")
    yield from _places(world)


def _expected(name: str) -> Expected:
    return "works" if name == "byte order mark" else "clear"


def _file(world: World, content: bytes) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "mine.toml").write_bytes(content.replace(b"@HERE@", os.fsencode(work)))
        return world.train(recipe="mine.toml")

    return prepared


def _set(world: World, text: str) -> Callable[[Path], list[str]]:
    return lambda _: world.train(None, "--set", text)


def _command(arguments: list[str]) -> Callable[[Path], list[str]]:
    return lambda _: arguments


def _files() -> dict[str, bytes]:
    text = RECIPE.encode()
    return {
        "byte order mark": b"\xef\xbb\xbf" + text,
        "empty": b"",
        "UTF-16": RECIPE.encode("utf-16"),
        "UTF-32": RECIPE.encode("utf-32"),
        "Latin-1": text + "title = 'é'\n".encode("latin-1"),
        "binary": bytes(range(256)),
        "NUL": text + b"\0",
        "zeros": bytes(1000),
        "arrays nested deep": text + b"x = " + b"[" * DEEP + b"]" * DEEP,
        "tables nested deep": text + b"x = " + b"{a=" * DEEP + b"1" + b"}" * DEEP,
        "dotted key deep": text + b".".join([b"a"] * DEEP) + b" = 1\n",
        "header deep": text + b"[" + b".".join([b"a"] * DEEP) + b"]\n",
        "integer of 5,000 digits": text + b"x = " + b"1" * 5000,
        "integer of 30 digits": text.replace(b"= 8", b"= " + b"8" * 30),
        "hexadecimal of 9,000 digits": text.replace(b"= 8", b"= 0x" + b"8" * 9000),
        "float of 5,000 digits": text + b"x = 1." + b"1" * 5000,
        "date": text.replace(b"= 8", b"= 1979-05-27"),
        "date out of range": text.replace(b"= 8", b"= 1979-13-77"),
        "key twice": text + text,
        "open string": text + b'title = "',
        "open table": text + b"[views",
        "bare CR": text.replace(b"\n", b"\r"),
        "JSON": b'{"views": {}}',
        "larger than 1 MiB": text + b"# comment\n" * 200_000,
        "a line of 10 MB": b"#" * 10_000_000,
        "surrogate escape": text + b'title = "\\ud800"\n',
        "no terms": b"[views.anchor]\n",
        "no views": b'[[terms]]\nkind = "contrastive"\n',
        "terms a number": b"terms = 3\n",
        "terms a table": b"[terms]\nx = 1\n",
        "terms of numbers": b"terms = [1, 2]\n",
        "views a number": b"views = 3\n" + text.split(b"[views.twin]")[1],
        "a view a number": b"[views]\nanchor = 3\n",
        "kind a number": b"[[terms]]\nkind = 3\n",
        "kind unknown": b'[[terms]]\nkind = "magic"\n',
        "extends itself": b'extends = "mine.toml"\n',
        "extends by absolute path": b'extends = "@HERE@/mine.toml"\n',
        "extends nothing": b'extends = "none.toml"\n',
        "extends a device": b'extends = "/dev/zero.toml"\n',
        "extends a number": b"extends = 3\n",
        "extends a list": b'extends = ["simcse"]\n',
        "extends a folder": b'extends = "../work"\n',
        "extends with a NUL": b'extends = "a\\u0000.toml"\n',
        "extends a long name": b'extends = "' + b"a" * 5000 + b'.toml"\n',
    }


def _tables() -> dict[str, str]:
    out = {}
    for key in ("for", "with", "faithful", "corpus", "encoder", "optimizer", "schedule", "selection", "published"):
        for value in ("3", '"x"', "[1]", "nan"):
            if key not in ("encoder",):
                out[f"{key} = {value}"] = ""  # replaced below: a top-level key must come first
    broken = {name: f"{name}\n" for name in out}
    more = {
        "for.x a number": "[for]\nother = 3\n",
        "for.x a list": "[for]\nother = [1]\n",
        "for.x of lists": "[for.other]\noptimizer = [1]\n",
        "another family's a number": "[for]\nbert-base = 3\n",
        "with.x a number": "[with]\nparaphrases = 3\n",
        "for.x.terms a number": "[for.other]\nterms = 3\n",
        "for.x.terms.y a number": "[for.other.terms]\ncontrastive = 3\n",
        "for.x.terms.7": "[for.other.terms.7]\nweight = 3\n",
        "for.x.terms.²": '[for.other.terms."²"]\nweight = 3\n',
        "for.x.terms.-1": "[for.other.terms.-1]\nweight = 3\n",
        "build a number": "[build]\nx = 3\n",
        "build without a kind": "[build.x]\nrate = 3\n",
        "build of a kind unknown": '[build.x]\nkind = "magic"\n',
        "teacher a number": "[teachers]\nx = 3\n",
        "teacher's length negative": '[teachers.x]\nmodel = "minilm"\nmax_length = -3\n',
        "published a word": '[published]\nother = "high"\n',
        "published NaN": "[published]\nother = nan\n",
        "parts a number": "[corpus]\nparts = 3\n",
        "a part a number": "[corpus.parts]\nx = 3\n",
        "part's rows negative": "[corpus.parts.x]\nrows = -3\n",
        "clauses NaN": "[corpus]\nclauses = nan\n",
        "name of a view empty, unused key": '[views.""]\ntext = 3\n',
    }
    return more | {f"{name} (top)": f"[x]\n{text}" for name, text in broken.items()}


def _overrides() -> list[str]:
    keys = (
        "optimizer.lr",
        "optimizer.weight_decay",
        "optimizer.eps",
        "optimizer.max_grad_norm",
        "schedule.warmup",
        "training.seed",
        "training.batch_size",
        "training.checkpoint_every",
        "terms.contrastive.temperature",
        "terms.contrastive.weight",
        "encoder.max_length",
        "encoder.dropout",
        "views.anchor.dropout",
    )
    values = [f"{key}={value}" for key in keys for value in NUMBERS]
    words = (
        "",
        "=",
        "x",
        "x=",
        "a.b=1",
        ".=1",
        "a..b=1",
        "optimizer=3",
        "terms=3",
        "views=3",
        "training.seed=4294967296",
    )
    odd = ("optimizer.betas=[nan, 0.9]", "optimizer.betas=[0.9]", "optimizer.betas=[1.0, 1.0]", "terms.7.weight=1")
    deep = (".".join(["a"] * 2000) + "=1", "x=" + "[" * 2000, "views.anchor.text=" + "x" * 10_000)
    names = ("views.anchor.prompt={}", "views.anchor.prompt=3", "views.anchor.text=../../x", "views.anchor.text=a\0b")
    return [*values, *words, *odd, *deep, *names]


def _arguments(world: World) -> dict[str, list[str]]:
    train = world.train()
    build = ["build", "simcse", str(world.corpus), "-o", "out"]
    out = {f"--seeds {text[:40]}": [*train, "--seeds", text] for text in _SEEDS}
    out |= {f"--seed {text}": [*train, "--seed", text] for text in ("-1", "4294967296", "1e3", "x", "9" * 30)}
    out |= {f"build --seed {text}": [*build, "--seed", text] for text in ("-1", "4294967296", "x")}
    out |= {f"build --workers {text}": [*build, "--workers", text] for text in ("x", "9" * 30)}
    out |= {f"recipe called {text[:30]!r}": world.train(recipe=text) for text in _NAMES}
    out |= {f"variant {text}": [*train, "--variant", text] for text in ("", "loud", "sound\n")}
    return out


_SEEDS = (
    *(
        "",
        ",",
        "x",
        "1,1",
        "5-1",
        "-1",
        "1-",
        "1-2-3",
        "²",
        "١-٣",
        "1.5",
        "4294967296",
        "9" * 40,
        "0-999999",
        "1-10000000000",
    ),
    *("0-4294967295", "nan", "1 2", "1,,2", "0x1"),
)
_NAMES = (
    "",
    "magic",
    "simcse.tml",
    "../simcse",
    "none.toml",
    "/dev/zero",
    "a\0b.toml",
    "x" * 5000 + ".toml",
    ".toml",
    "/",
)


def _places(world: World) -> Iterator[Trial]:
    def placed(make: Callable[[Path], object]) -> Callable[[Path], list[str]]:
        def prepared(work: Path) -> list[str]:
            make(work / "mine.toml")
            return world.train(recipe="mine.toml")

        return prepared

    for name, make in {
        "a folder": lambda p: p.mkdir(),
        "a device": lambda p: p.symlink_to("/dev/zero"),
        "a pipe": lambda p: os.mkfifo(p),
        "a loop": lambda p: p.symlink_to(p),
        "a dangling link": lambda p: p.symlink_to("nothing"),
        "sparse": lambda p: p.open("wb").truncate(2**36),
    }.items():
        yield Trial("recipes", f"place: {name}", placed(make), "clear")
