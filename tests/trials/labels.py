"""Trials of a user's labels, guards and limits: `run` with --labels, --guard, --minutes, --dry-run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import World, not_finite

Content = tuple[str, bytes, Expected]
HEAD = "sentence1\tsentence2\tlabel\n"
PAIRS = "the cat sits\tthe cat runs\tsame\nthe dog eats\tthe dog never eats\topposite\n"
GUARDED = ("selection.keep=last", "selection.guard_tolerance=50")


def trials(world: World) -> Iterator[Trial]:
    """Broken files of labels, broken guards, and odd numbers for each limit."""
    for name, content in _labels().items():
        yield _run(world, f"labels {name}", content, "--labels")
    for share in ("0", "-1", "0.51", "1", "nan", "inf", "1e400", "x", ""):
        yield _run(
            world, f"label share {share!r}", ("l.tsv", _table(PAIRS), "clear"), "--labels", "--label-share", share
        )
    for share in ("0.5", "1e-9"):
        yield _run(world, f"label share {share}", ("l.tsv", _table(PAIRS), "works"), "--labels", "--label-share", share)
    yield Trial("labels", "labels for a recipe that needs a column", _needing(world), "clear")
    for file in ("labelled.parquet", "mixture.parquet"):
        for change in ("half", "empty", "text", "flipped"):
            yield Trial(
                "labels", f"{file} {change}, then resumed", _damaged(world, file, change), "either", check=not_finite
            )
    yield from _guards(world)
    yield from _limits(world)


def _table(rows: str) -> bytes:
    return (HEAD + rows).encode()


def _lines(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _labels() -> dict[str, Content]:
    row = {"sentence1": "a cat", "sentence2": "a dog", "label": "same"}
    scored = "sentence1,sentence2,score\n"
    many = scored + "".join(f"a cat,a dog {i},{i}\n" for i in range(5000))
    searches = scored + "".join(f"q{i % 40},a dog {i},{i % 7}\n" for i in range(400))
    broken: dict[str, tuple[str, bytes]] = {
        "empty": ("l.tsv", b""),
        "a header alone": ("l.tsv", HEAD.encode()),
        "blank lines": ("l.tsv", _table("\n\n\n")),
        "of other columns": ("l.tsv", b"a\tb\nc\td\n"),
        "without a label": ("l.tsv", b"sentence1\tsentence2\na cat\ta dog\n"),
        "unknown": ("l.tsv", _table("a cat\ta dog\tperhaps\n")),
        "numbers as labels": ("l.tsv", _table("a cat\ta dog\t1\n")),
        "blank": ("l.tsv", _table("a cat\ta dog\t \n")),
        "a blank sentence": ("l.tsv", _table(" \ta dog\tsame\n")),
        "contradicting": ("l.tsv", _table("a cat\ta dog\tsame\na cat\ta dog\topposite\n")),
        "contradicting, turned around": ("l.tsv", _table("a cat\ta dog\tsame\na dog\ta cat\topposite\n")),
        "its own opposite": ("l.tsv", _table("a cat\ta cat\topposite\n")),
        "too many cells": ("l.tsv", _table("a cat\ta dog\tsame\tmore\n")),
        "too few cells": ("l.tsv", _table("a cat\ta dog\n")),
        "scores of nan": ("l.csv", (scored + "a,b,nan\na,c,1\n").encode()),
        "scores of inf": ("l.csv", (scored + "a,b,inf\na,c,1\n").encode()),
        "scores of words": ("l.csv", (scored + "a,b,good\na,c,bad\n").encode()),
        "equal scores": ("l.csv", (scored + "a,b,1\na,c,1\n").encode()),
        "one scored hit": ("l.csv", (scored + "a,b,1\n").encode()),
        "two scores of one hit": ("l.csv", (scored + "a,b,1\na,b,0\n").encode()),
        "a search with 5,000 hits": ("l.csv", many.encode()),
        "unclosed quote": ("l.csv", (scored + '"a,b,1\n').encode()),
        "two columns of one name": ("l.csv", b"sentence1,sentence1,label\na,b,same\n"),
        "a number as a sentence": ("l.jsonl", _lines({**row, "sentence1": 3})),
        "null as a sentence": ("l.jsonl", _lines({**row, "sentence2": None})),
        "a list as a sentence": ("l.jsonl", _lines({**row, "sentence2": ["a"]})),
        "a list as a label": ("l.jsonl", _lines({**row, "label": ["same"]})),
        "true as a score": ("l.jsonl", _lines({"sentence1": "a", "sentence2": "b", "score": True})),
        "an object as a score": ("l.jsonl", _lines({"sentence1": "a", "sentence2": "b", "score": {}})),
        "a long number as a score": (
            "l.jsonl",
            b'{"sentence1": "a", "sentence2": "b", "score": ' + b"9" * 400 + b"}\n",
        ),
        "a list of lists": ("l.jsonl", b"[[1]]\n"),
        "half a surrogate pair": ("l.jsonl", b'{"sentence1": "\\ud800", "sentence2": "b", "label": "same"}\n'),
        "Latin-1": ("l.tsv", _table("caf\xe9\ta dog\tsame\n").decode().encode("latin-1")),
        "UTF-16": ("l.tsv", _table(PAIRS).decode().encode("utf-16")),
        "binary": ("l.tsv", bytes(range(256)) * 40),
        "5 MiB in a line": ("l.tsv", _table("a" * (5 * 2**20) + "\ta dog\tsame\n")),
        "Parquet by name": ("l.parquet", b"PAR1"),
        "HTML of judged searches": ("search.html", b"<html><script>save()</script></html>"),
        "an ending unknown": ("l.labels", _table(PAIRS)),
        "half a gzip": ("l.tsv.gz", gzip.compress(_table(PAIRS * 50))[:60]),
        "gzip by name": ("l.tsv.gz", _table(PAIRS)),
    }
    right: dict[str, tuple[str, bytes]] = {
        "one": ("l.tsv", _table("a cat\ta dog\tsame\n")),
        "upper case": ("l.tsv", _table("a cat\ta dog\t SAME \n")),
        "twice": ("l.tsv", _table(2 * "a cat\ta dog\tsame\n")),
        "a text and itself": ("l.tsv", _table("a cat\ta cat\tsame\n")),
        "CRLF and a mark": ("l.tsv", b"\xef\xbb\xbf" + _table(PAIRS).replace(b"\n", b"\r\n")),
        "gzip": ("l.tsv.gz", gzip.compress(_table(PAIRS))),
        "one text of a megabyte": ("l.tsv", _table("cat " * 2**18 + "\ta dog\tsame\n")),
        "other scripts": ("l.tsv", _table("猫が座る\tكلب\tsame\n🐈\t🐕\topposite\n")),
        "judged searches": ("l.csv", searches.encode()),
    }
    return {name: (*each, "clear") for name, each in broken.items()} | {
        name: (*each, "works") for name, each in right.items()
    }


def _arguments(world: World, *more: str, settings: tuple[str, ...] = ()) -> list[str]:
    """The arguments of the shortest run."""
    where = [str(world.recipe), str(world.corpus), "--backbone", str(world.encoder), "-o", "out"]
    return ["run", *where, *(part for s in ("training.max_steps=2", *settings) for part in ("--set", s)), *more]


def _run(world: World, name: str, content: Content, *options: str) -> Trial:
    file, data, expected = content

    def prepared(work: Path) -> list[str]:
        (work / file).write_bytes(data)
        return _arguments(world, options[0], file, *options[1:])

    return Trial("labels", name, prepared, expected, check=not_finite)


def _needing(world: World) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "l.tsv").write_bytes(_table(PAIRS))
        used = world.recipe.read_text().replace('positive = "twin"', 'positive = "more"')
        (work / "r.toml").write_text(used + '[views.more]\ntext = "more"\n', encoding="utf-8")
        return ["run", "r.toml", *_arguments(world, "--labels", "l.tsv")[2:]]

    return prepared


def _damaged(world: World, file: str, change: str) -> Callable[[Path], list[str]]:
    """A run whose rows were prepared, and then damaged, before its first step."""

    def prepared(work: Path) -> list[str]:
        from tests.trials.own_files import CHANGES, damage

        (work / "l.tsv").write_bytes(_table(PAIRS * 3))
        parts = "[corpus.parts.all]\nrows = 20\nneeds = []\n" if file.startswith("mixture") else ""
        (work / "r.toml").write_text(world.recipe.read_text() + parts, encoding="utf-8")
        rows = _rows_of(world, work)
        damage(rows / file, CHANGES[{"flipped": "flipped in the middle"}.get(change, change)])
        return ["run", "r.toml", *_arguments(world, "--labels", "l.tsv", "--resume")[2:]]

    return prepared


def _rows_of(world: World, work: Path) -> Path:
    from opencse.data.label_rows import with_labels
    from opencse.data.labels import read_labels
    from opencse.data.paraphrases import Paraphrases
    from opencse.data.prepare import prepare_rows
    from opencse.io.corpus import Corpus
    from opencse.recipes import load_recipe
    from opencse.views.languages import ENGLISH

    labels = read_labels(work / "l.tsv")
    recipe = with_labels(load_recipe(work / "r.toml"), labels)
    options = {"models": {}, "paraphrases": Paraphrases(), "pack": ENGLISH}
    prepare_rows(recipe, Corpus(world.corpus), work / "out", labels=labels, **options)
    return work / "out"


def _guards(world: World) -> Iterator[Trial]:
    texts = world.sentences
    questions = "group\tquestion\n" + "".join(f"{i // 2}\t{t}\n" for i, t in enumerate(texts))
    topics = "topic\ttext\n" + "".join(f"{i % 2}\t{t}\n" for i, t in enumerate(texts))
    files: dict[str, tuple[dict[str, bytes], Expected]] = {
        "none": ({}, "clear"),
        "other files": ({"notes.txt": b"x"}, "clear"),
        "empty": ({"questions.tsv": b""}, "either"),
        "a header alone": ({"questions.tsv": b"group\tquestion\n"}, "either"),
        "other columns": ({"questions.tsv": b"a\tb\nc\td\n"}, "clear"),
        "a question alone": ({"questions.tsv": b"group\tquestion\n1\ta\n1\tb\n2\tc\n"}, "clear"),
        "a blank question": ({"questions.tsv": b"group\tquestion\n1\ta\n1\t \n"}, "clear"),
        "the same question twice": ({"questions.tsv": b"group\tquestion\n1\ta cat\n1\ta cat\n"}, "either"),
        "a passage without a question": ({"answers.tsv": b"question\tpassage\n\ta cat\n"}, "either"),
        "a blank passage": ({"answers.tsv": b"question\tpassage\nwho\t\n"}, "clear"),
        "one topic": ({"topics.tsv": b"topic\ttext\n" + b"".join(b"a\ttext %d\n" % i for i in range(30))}, "either"),
        "two texts": ({"topics.tsv": b"topic\ttext\na\tone\nb\ttwo\n"}, "either"),
        "a topic each": (
            {"topics.tsv": b"topic\ttext\n" + b"".join(b"%d\ttext %d\n" % (i, i) for i in range(30))},
            "either",
        ),
        "one long text": ({"long.tsv": b"summary\ttext\na cat\tA cat sits. A dog runs.\n"}, "either"),
        "Latin-1": ({"questions.tsv": "group\tquestion\n1\té\n1\tb\n".encode("latin-1")}, "clear"),
        "binary": ({"topics.tsv": bytes(range(256)) * 9}, "clear"),
        "whole": ({"questions.tsv": questions.encode(), "topics.tsv": topics.encode()}, "works"),
    }
    for name, (contents, expected) in files.items():
        yield Trial("labels", f"guards: {name}", _guarded(world, contents), expected, check=not_finite)
    places: dict[str, tuple[str, Expected]] = {
        "nowhere": ("nowhere", "clear"),
        "a file": ("/etc/passwd", "clear"),
        "a device": ("/dev/zero", "clear"),
        "a name too long": ("g" * 5000, "clear"),
        "no name": ("", "clear"),
        "a name that is not UTF-8": ("g\udcff", "clear"),
    }
    for name, (place, expected) in places.items():
        arguments = _arguments(world, "--guard", place, settings=GUARDED)
        yield Trial("labels", f"guards in {name}", lambda _, a=arguments: a, expected)
    yield Trial("labels", "guards for a recipe without", lambda _: _arguments(world, "--guard", "."), "clear")


def _guarded(world: World, contents: dict[str, bytes]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "guards").mkdir()
        for name, content in contents.items():
            (work / "guards" / name).write_bytes(content)
        return _arguments(world, "--guard", "guards", settings=GUARDED)

    return prepared


def _limits(world: World) -> Iterator[Trial]:
    for option in ("--tolerance", "--minutes"):
        for value in ("nan", "inf", "-inf", "-1", "1e400", "x", ""):
            expected: Expected = "either" if value in ("inf", "1e400") and option == "--minutes" else "clear"
            arguments = _arguments(world, option, value, "--dev", str(world.pairs))
            yield Trial("labels", f"{option} {value!r}", lambda _, a=arguments: a, expected, check=not_finite)
    arguments = _arguments(world, "--minutes", "0.5")
    yield Trial("labels", "--minutes 0.5", lambda _, a=arguments: a, "either", check=not_finite)
    for name, more in {
        "alone": [],
        "with --resume of nothing": ["--resume"],
        "with --minutes 0.5": ["--minutes", "0.5"],
        "with labels that are missing": ["--labels", "nowhere.tsv"],
        "with pairs that are missing": ["--pairs", "nowhere.tsv"],
    }.items():
        arguments = _arguments(world, "--dry-run", *more)
        missing = "missing" in name
        yield Trial(
            "labels", f"--dry-run {name}", lambda _, a=arguments: a, "clear" if missing else "either", check=_unwritten
        )


def _unwritten(work: Path) -> str | None:
    return "a dry run wrote its output folder" if (work / "out").exists() else None
