"""Trials of `check`, of `compare --texts`, of the cache, and of the bundled sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import PAIRS, World

MINUTES = ["--minutes", "0.1"]
PROSE = "\n\n".join(
    f"The {who} is {how} today. The {who} reads a book in the {where}."
    for who in ("dog", "teacher", "child", "doctor")
    for how, where in (("happy", "house"), ("young", "garden"), ("big", "street"))
)
"""Paragraphs of which contradictions can be made."""


def trials(world: World) -> Iterator[Trial]:
    """Broken texts and queries; odd options; a cache in odd places; things named `demo`."""
    for name, (file, content, expected) in _texts(world).items():
        check = _finite_json
        yield Trial("searches", f"check: texts {name}", _checked(world, file, content), expected, check=check)
        yield Trial("searches", f"compare: texts {name}", _compared(world, file, content), expected, check=check)
    for name, (file, content, expected) in _queries().items():
        for command in (_checked, _compared):
            made = command(world, "t.txt", PROSE.encode(), (file, content))
            yield Trial("searches", f"{command.__name__[1:]}: queries {name}", made, expected, check=_finite_json)
    yield from _options(world)
    yield from _caches(world)
    yield from _demo(world)


def _texts(world: World) -> dict[str, tuple[str, bytes, Expected]]:
    lines = world.corpus.read_bytes()
    return {
        "empty": ("t.txt", b"", "clear"),
        "blank": ("t.txt", b"\n \n\t\n", "clear"),
        "one word": ("t.txt", b"cat\n", "either"),
        "one sentence": ("t.txt", b"The cat sits on the street today.\n", "either"),
        "one sentence, often": ("t.txt", b"The cat sits on the street today.\n" * 100, "either"),
        "two sentences": ("t.txt", b"The cat sits.\nThe dog never runs.\n", "either"),
        "numbers": ("t.txt", b"\n".join(b"%d %d %d" % (i, i, i) for i in range(100)), "either"),
        "other scripts": ("t.txt", "猫が座る。\nكلب يجري\n🐈 🐕\n".encode() * 20, "either"),
        "a sentence of a megabyte": ("t.txt", b"cat " * 2**18 + b"\n" + lines, "either"),
        "NUL bytes": ("t.txt", lines.replace(b" ", b"\0"), "either"),
        "Latin-1": ("t.txt", "café au lait\n".encode("latin-1"), "clear"),
        "binary": ("t.txt", bytes(range(256)) * 40, "clear"),
        "HTML without text": ("t.html", b"<html><head><title>x</title></head></html>", "clear"),
        "HTML cut short": ("t.html", b"<html><body><p>The cat sits. <b>The dog <!-- runs", "either"),
        "HTML nested 100,000 deep": ("t.html", b"<div>" * 100_000 + b"The cat sits on the street.", "either"),
        "HTML entities": (
            "t.html",
            b"<p>" + b"&#1114112; &#x110000; &#-1; &nosuch; " * 50 + b"The cat sits.</p>",
            "either",
        ),
        "Markdown of front matter": ("t.md", b"---\ntitle: x\n---\n", "clear"),
        "Markdown of headings": ("t.md", b"# a\n## b\n### c\n", "either"),
        "Markdown of a code block": ("t.md", b"```\ncat\n", "either"),
        "CSV without a text": ("t.csv", b"a,b\n1,2\n", "either"),
        "CSV of blanks": ("t.csv", b"text\n \n \n", "clear"),
        "JSONL of numbers": ("t.jsonl", b'{"text": 3}\n', "clear"),
        "Parquet by name": ("t.parquet", b"PAR1", "clear"),
        "an ending unknown": ("t.docx", b"PK\3\4", "clear"),
    }


def _queries() -> dict[str, tuple[str, bytes, Expected]]:
    return {
        "empty": ("q.txt", b"", "clear"),
        "blank": ("q.txt", b"\n\n", "clear"),
        "one": ("q.txt", b"cat\n", "works"),
        "the same, often": ("q.txt", b"cat\n" * 1000, "works"),
        "without a column": ("q.csv", b"a,b\n1,2\n", "either"),
        "of a column": ("q.csv", b"id,query\n1,a cat\n2,\n", "works"),
        "numbers": ("q.jsonl", b'{"query": 3}\n', "clear"),
        "binary": ("q.txt", bytes(range(256)), "clear"),
        "a megabyte": ("q.txt", b"cat " * 2**18, "works"),
    }


def _checked(
    world: World, file: str, content: bytes, queries: tuple[str, bytes] | None = None
) -> Callable[[Path], list[str]]:
    return _searched(["check", str(world.encoder), *MINUTES], file, content, queries)


def _compared(
    world: World, file: str, content: bytes, queries: tuple[str, bytes] | None = None
) -> Callable[[Path], list[str]]:
    return _searched(["compare", str(world.encoder), str(world.other)], file, content, queries)


def _searched(
    arguments: list[str], file: str, content: bytes, queries: tuple[str, bytes] | None
) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / file).write_bytes(content)
        more = []
        if queries is not None:
            (work / queries[0]).write_bytes(queries[1])
            more = ["--queries", queries[0]]
        return [*arguments, "--texts", file, "-o", "out", *more]

    return prepared


def _finite_json(work: Path) -> str | None:
    """What is wrong with the numbers of the pages that were written."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    for path in (work / "out").glob("*.json"):
        try:
            json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
        except ValueError as error:
            return f"{path.name} holds {error}"
    return None


def _options(world: World) -> Iterator[Trial]:
    texts, model = str(world.corpus), str(world.encoder)
    check = ["check", model, "--texts", texts, *MINUTES]
    wrong: dict[str, list[str]] = {
        "check: no such model": ["check", "nowhere/model", "--texts", texts],
        "check: a model without pooling": ["check", str(world.model), "--texts", texts],
        "check: no such pooling": ["check", str(world.model), "--texts", texts, "--pooling", "most"],
        "check: texts nowhere": ["check", model, "--texts", "nowhere.txt"],
        "check: texts a device": ["check", model, "--texts", "/dev/zero"],
        "check: texts an empty folder": ["check", model, "--texts", "."],
        "check: queries nowhere": [*check, "--queries", "nowhere.txt"],
        "check: queries a folder": [*check, "--queries", "."],
        "check: no such column": [*check, "--column", "body"],
        "check: 0 words": [*check, "--words", "0"],
        "check: words a word": [*check, "--words", "many"],
        "check: 0 minutes": ["check", model, "--minutes", "0"],
        "check: minutes nan": ["check", model, "--texts", texts, "--minutes", "nan"],
        "check: seed -1": [*check, "--seed", "-1"],
        "check: seed 2**64": [*check, "--seed", str(2**64)],
        "check: precision fp8": [*check, "--precision", "fp8"],
        "check: page in a file": [*check, "-o", str(world.pairs)],
        "check: page below a file": [*check, "-o", str(world.pairs / "out")],
        "check: page in /proc": [*check, "-o", "/proc/out"],
        "compare: one model": ["compare", model, "--texts", texts],
        "compare: three models": ["compare", model, model, model, "--texts", texts],
        "compare: no such model": ["compare", model, "nowhere/model", "--texts", texts],
        "compare: queries alone": ["compare", model, str(world.other), "--queries", texts],
        "compare: page in a file": ["compare", model, str(world.other), "--texts", texts, "-o", str(world.pairs)],
    }
    right: dict[str, tuple[list[str], Expected]] = {
        "check: words 10**9": (["check", model, "--texts", "t.txt", *MINUTES, "--words", str(10**9)], "works"),
        "check: minutes inf": (["check", model, "--texts", texts, "--minutes", "inf"], "either"),
        "compare: a model and its copy": (
            ["compare", model, str(world.other), "--texts", "t.txt", "-o", "out"],
            "works",
        ),
        "compare: a model and itself": (["compare", model, model, "--texts", texts, "-o", "out"], "clear"),
        "compare: a run and its model": (["compare", str(world.finished), model, "--texts", texts], "either"),
        "evaluate: judged searches as pairs": (["evaluate", model, "--pairs", "judgements.csv"], "works"),
        "evaluate: the page of judged searches": (["evaluate", model, "--pairs", "search.html"], "clear"),
    }
    for name, arguments in wrong.items():
        yield Trial("searches", name, lambda _, a=arguments: a, "clear")

    def with_judged(work: Path, arguments: list[str]) -> list[str]:
        (work / "judgements.csv").write_text("sentence1,sentence2,score\na cat,a dog,1\na cat,a bird,0\nhi,a cat,1\n")
        (work / "search.html").write_text("<html></html>")
        (work / "t.txt").write_text(PROSE)
        return arguments

    for name, (arguments, expected) in right.items():
        command = lambda work, a=arguments: with_judged(work, a)  # noqa: E731
        yield Trial("searches", name, command, expected, check=_finite_json)


def _caches(world: World) -> Iterator[Trial]:
    places: dict[str, tuple[Callable[[Path], object], str]] = {
        "missing": (lambda _: None, "nowhere/at/all"),
        "a file": (lambda work: (work / "c").write_text("x"), "c"),
        "below a file": (lambda work: (work / "c").write_text("x"), "c/d"),
        "a dangling link": (lambda work: (work / "c").symlink_to("nothing"), "c"),
        "a link to itself": (lambda work: (work / "c").symlink_to("c"), "c"),
        "in /proc": (lambda _: None, "/proc/opencse"),
        "a device": (lambda _: None, "/dev/null"),
        "a name too long": (lambda _: None, "c" * 300),
        "of files for folders": (_files_for_folders, "c"),
        "of links": (_links, "c"),
        "of others": (lambda work: _filled(work / "c", "mine"), "c"),
    }
    for name, (prepare, place) in places.items():
        for arguments in (["cache"], ["cache", "--clear"], world.train()):

            def prepared(work: Path, make=prepare, a=arguments) -> list[str]:
                make(work)
                return a

            label = " ".join(arguments[:2]) if arguments[0] == "cache" else "train"
            environment: dict[str, str | None] = {"OPENCSE_CACHE": place}
            yield Trial("searches", f"{label}, cache {name}", prepared, "either", environment, check=_others_stay)
    for arguments in (["--only", "tokens"], ["--clear", "--only", "nothing"], ["--clear", "--only", ""], ["--only"]):
        yield Trial("searches", f"cache {' '.join(arguments)}", lambda _, a=arguments: ["cache", *a], "clear")
    yield Trial("searches", "cache --clear, one kind", lambda _: ["cache", "--clear", "--only", "tokens"], "works")


def _filled(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "keep").write_text("x")


def _files_for_folders(work: Path) -> None:
    (work / "c").mkdir()
    for name in ("tokens", "vectors", "inputs", "sentences"):
        (work / "c" / name).write_text("x")


def _links(work: Path) -> None:
    _filled(work, "mine")
    (work / "c").mkdir()
    (work / "c" / "tokens").symlink_to(work / "mine")


def _others_stay(work: Path) -> str | None:
    kept = [path for path in (work / "mine", work / "c" / "mine") if path.is_dir()]
    return next((f"removed {path}/keep" for path in kept if not (path / "keep").exists()), None)


def _demo(world: World) -> Iterator[Trial]:
    places: dict[str, tuple[Callable[[Path], object], Expected]] = {
        "nothing else": (lambda _: None, "works"),
        "an empty folder": (lambda work: (work / "demo").mkdir(), "clear"),
        "an empty file": (lambda work: (work / "demo").write_text(""), "clear"),
        "a file of text": (lambda work: (work / "demo").write_text("the cat sits\n" * 50), "clear"),
        "a dangling link": (lambda work: (work / "demo").symlink_to("nothing"), "works"),
    }
    for name, (prepare, expected) in places.items():

        def prepared(work: Path, make=prepare) -> list[str]:
            make(work)
            return world.train("demo")

        yield Trial("searches", f"demo is {name}", prepared, expected)
    for name, make in {
        "a folder": lambda w: (w / "demo").mkdir(),
        "a file": lambda w: (w / "demo").write_text(PAIRS),
    }.items():

        def evaluated(work: Path, make=make) -> list[str]:
            make(work)
            return ["evaluate", str(world.encoder), "--pairs", "demo"]

        yield Trial("searches", f"pairs where demo is {name}", evaluated, "either")
