"""Trials of what strangers write: models, documents, paths, packs, names for the terminal; and odd variables."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.text.test_document_worker import WORD, docx, pdf, table
from tests.trials.trial import OUTSIDE, PLANTED, Expected, Trial
from tests.trials.world import World

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3, 10**9, 10**30, 1e308, "", "../x", "/etc/passwd", "owner/name", "a\0b", EVIL, [], {}, [[]],
    [1] * 50, {"a": {"b": 1}}, "x" * 10_000,
)  # fmt: skip
Change = Callable[[Path], object]


class Planted:
    """Leaves a file beside the command's folder when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path(f"../{PLANTED}").write_text, ("unpickled",)


def trials(world: World, seed: int, count: int) -> Iterator[Trial]:
    """All families; `count` random trials of models and of documents, drawn with a seed."""
    yield from _models(world, random.Random(seed), count)
    yield from _documents(world, random.Random(seed + 1), count)
    yield from _paths(world)
    yield from _environment(world)
    yield from _packs(world)
    yield from _terminal(world)


# Models


def _models(world: World, rng: random.Random, count: int) -> Iterator[Trial]:
    for name, change in MODELS.items():
        yield _model_trial(world, name, change, "clear")
    for number in range(count):
        yield _model_trial(world, f"random {number}", _random_change(rng), "either")


def _model_trial(world: World, name: str, change: Change, expected: Expected) -> Trial:
    def prepared(work: Path) -> list[str]:
        model = work / "model"
        shutil.copytree(world.encoder, model)
        change(model)
        return ["evaluate", str(model), "--pairs", str(world.pairs), "-o", "scores.json"]

    return Trial("models", name, prepared, expected)


def _plant(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(Planted()))


def _set(file: str, **values: Any) -> Change:
    def change(model: Path) -> None:
        path = model / file
        table = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(table | values))

    return change


def _pickled(weights: str, *, other: str = "") -> Change:
    def change(model: Path) -> None:
        whole = model / "model.safetensors"
        whole.rename(model / other) if other else whole.unlink()
        _plant(model / weights)

    return change


def _index(shard: str) -> Change:
    def change(model: Path) -> None:
        (model / "model.safetensors").rename(model.parent / "weights.safetensors")
        (model / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": {"a": shard}})
        )
        if shard and not Path(shard).is_absolute() and ".." not in shard:
            _plant(model / shard)

    return change


def _module(kind: str, path: str = "2_More", file: str = "config.json", **settings: Any) -> Change:
    def change(model: Path) -> None:
        modules = json.loads((model / "modules.json").read_text())
        modules.append({"idx": 2, "name": "2", "path": path, "type": kind})
        (model / "modules.json").write_text(json.dumps(modules))
        if ".." in path or path.startswith("/"):
            return
        (model / path).mkdir()
        (model / path / file).write_text(json.dumps(settings))
        _plant(model / path / "pytorch_model.bin")

    return change


def _link_out(file: str) -> Change:
    def change(model: Path) -> None:
        (model / file).rename(model.parent / "elsewhere")
        (model / file).symlink_to(model.parent / "elsewhere")

    return change


def _pipe(file: str) -> Change:
    def change(model: Path) -> None:
        (model / file).unlink(missing_ok=True)
        os.mkfifo(model / file)

    return change


def _normalizer(**step: Any) -> Change:
    return _set("tokenizer.json", normalizer={"type": "Sequence", "normalizers": [step] * 8})


_TYPE = "sentence_transformers.models."
MODELS: dict[str, Change] = {
    **{f"pickled {name}": _pickled(name) for name in ("pytorch_model.bin", "model.pt", "x.ckpt")},
    **{
        f"pickled beside {other}": _pickled("pytorch_model.bin", other=other)
        for other in ("other.safetensors", "model.safetensors.old")
    },
    "pickle called safetensors": _pickled("model.safetensors"),
    **{
        f"index names {shard}": _index(shard)
        for shard in ("shard.bin", "../weights.safetensors", "/etc/passwd", "..", "")
    },
    **{
        f"pickled {kind}": _module(_TYPE + kind, in_features=32, out_features=8)
        for kind in ("Dense", "LayerNorm", "CNN", "LSTM", "WordWeights", "StaticEmbedding", "Transformer")
    },
    "pickled in a router": _module(
        f"{_TYPE}Router",
        file="router_config.json",
        types={"..": f"{_TYPE}Dense"},
        structure={},
        parameters={},
    ),
    "router of many": _module(
        f"{_TYPE}Router",
        file="router_config.json",
        types={f"m{i}": f"{_TYPE}Normalize" for i in range(10**5)},
        structure={},
        parameters={},
    ),
    **{f"module at {path}": _module(f"{_TYPE}Normalize", path) for path in (f"../../{OUTSIDE}", "/etc")},
    **{
        f"module type {kind}": _module(kind)
        for kind in ("os.system", "sentence_transformers.base.modules.module.torch", "own.Own", EVIL)
    },
    "adapter of a folder": _set("adapter_config.json", base_model_name_or_path="../weights"),
    "adapter of a hub": _set("adapter_config.json", base_model_name_or_path="owner/name"),
    **{
        f"config {key}": _set("config.json", **{key: value})
        for key, value in {
            "attn_implementation": "owner/kernel",
            "_attn_implementation": {"": "owner/kernel"},
            "transformers_weights": "adapter_model.bin",
            "quantization_config": {"quant_method": "gptq"},
            "use_timm_backbone": True,
            "num_hidden_layers": 10**9,
            "vocab_size": 10**12,
            "hidden_size": 10**7,
            "num_labels": 10**9,
            "max_position_embeddings": 10**10,
            "model_type": f"own{EVIL}",
        }.items()
    },
    **{
        f"arguments {key}": _set("sentence_bert_config.json", **{key: value})
        for key, value in {
            "model_args": {"gguf_file": "../x"},
            "tokenizer_args": {"tokenizer_file": "/etc/passwd"},
            "tokenizer_name_or_path": "owner/name",
            "transformer_task": "retrieval",
        }.items()
    },
    "truncate_dim": _set("config_sentence_transformers.json", truncate_dim=-3),
    **{f"link {file}": _link_out(file) for file in ("model.safetensors", "tokenizer.json", "modules.json")},
    **{f"pipe {file}": _pipe(file) for file in ("tokenizer.json", "README.md", "modules.json", "vocab.txt")},
    "normalizer that doubles": _normalizer(type="Replace", pattern={"String": "a"}, content="aa" * 9),
    "normalizer that prepends": _normalizer(type="Prepend", prepend="a" * 99),
}  # fmt: skip


def _random_change(rng: random.Random) -> Change:
    """A random change of a value in a random file of settings, or of some bytes of any file."""
    seed = rng.random()

    def change(model: Path) -> None:
        own = random.Random(seed)
        files = sorted(path for path in model.rglob("*") if path.is_file())
        tables = [path for path in files if path.suffix == ".json"]
        if own.random() < 0.3:
            path = own.choice(files)
            content = bytearray(path.read_bytes())
            for _ in range(own.randint(1, 20)):
                content[own.randrange(len(content))] = own.randrange(256)
            path.write_bytes(content[: own.choice((len(content), len(content) // 2))])
            return
        path = own.choice(tables)
        table = json.loads(path.read_text())
        node = own.choice(table) if isinstance(table, list) else table
        for _ in range(own.randint(0, 2)):
            inner = [value for value in node.values() if isinstance(value, dict) and value]
            node = own.choice(inner) if inner else node
        node[own.choice([*node, "auto_map", "unknown"])] = own.choice(VALUES)
        path.write_text(json.dumps(table))

    return change


# Documents


def _documents(world: World, rng: random.Random, count: int) -> Iterator[Trial]:
    contents: dict[str, bytes] = {
        "brackets.md": b"[" * 60_000,
        "quotes.md": b">" * 60_000,
        "deep.md": "".join(f"{'  ' * i}- item {i}\n" for i in range(200)).encode(),
        "stars.md": b"*a_" * 20_000,
        "blank.txt.gz": gzip.compress(b"\n" * 50_000_000),
        "tags.html": b"<div>" * 200_000,
        "declaration.html": b"<![x[" * 1000,
        "nul.txt": b"a\0b\n",
        "cut.docx": b"PK\x03\x04 nothing",
        "cut.pdf": b"%PDF-1.4",
        "keys.jsonl": b"".join(b'{"%s": 1}\n' % EVIL.encode() for _ in range(3)),
        "deep.jsonl": b'{"text": ' + b"[" * 100_000 + b"\n",
        "header.csv": f"{EVIL},{EVIL}\n1,2\n".encode(),
        "cut.parquet": b"PAR1 nothing PAR1",
    }
    for name, content in contents.items():
        yield _document_trial(world, name, content, "either")
    for name, content in WORD.items():
        yield _document_trial(world, f"{name}.docx", content, "either")
    yield _document_trial(world, "pages.pdf", pdf(60_000), "clear")
    for number in range(count):
        kind = rng.choice(("md", "html", "txt", "jsonl", "csv", "tsv", "docx", "pdf", "parquet"))
        content = _random_document(kind, rng)
        yield _document_trial(world, f"random-{number}.{kind}", content, "either")


_PIECES = {
    "md": (
        "\n",
        "\n\n",
        "- ",
        "  ",
        "[",
        "](",
        "|",
        "```",
        "*",
        ">",
        "# ",
        "---\n",
        "The cat sits. ",
    ),
    "html": ("<p>", "</p>", "<!--", "-->", "<![", "&#", "&#x110000;", "<script>", "The cat sits. "),
    "txt": ("\n", "\r\n", "\t", "\u2028", "\x0c", "The cat sits. ", "the dog"),
    "jsonl": ('{"text": "The cat sits."}\n', '{"text": 3}\n', '{"txt": "x"}\n', "{}\n", "\n"),
    "csv": ("text,", "The cat sits.", ",", '"', "\n", ";", "\r"),
    "tsv": ("text\t", "The cat sits.", "\t", '"', "\n"),
}


def _random_document(kind: str, rng: random.Random) -> bytes:
    """Random pieces of a format; of a format of bytes, a whole file with some bytes changed. Few are not UTF-8."""
    if kind in _PIECES:
        content = "".join(rng.choices(_PIECES[kind], k=rng.randint(1, 3000))).encode("utf-8")
        return content + b"\xff" if rng.random() < 0.1 else content
    whole = docx(table("", rng.randint(1, 9))) if kind == "docx" else pdf(3)
    if kind == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.table({"text": ["The cat sits.", "A dog runs."] * 9}), file)
        whole = file.getvalue()
    changed = bytearray(whole)
    for _ in range(rng.randint(1, 5)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _document_trial(world: World, name: str, content: bytes, expected: Expected) -> Trial:
    def prepared(work: Path) -> list[str]:
        (work / name).write_bytes(content)
        return ["build", str(world.building), name, "--workers", "1", "-o", "out"]

    return Trial("documents", name, prepared, expected)


# Paths


def _paths(world: World) -> Iterator[Trial]:
    for name in (f"../../../{OUTSIDE}", "/tmp/x", "a/b", "..", ""):
        yield Trial("paths", f"stage {name!r}", partial(_stage, world, name), "clear")
    for record in (None, "{}", '{"mine": 1}'):
        yield Trial(
            "paths", f"overwrite, record {record}", partial(_overwrite, world, record), "clear"
        )
    yield Trial(
        "paths", "a link as the model", partial(_overwrite, world, None, link=True), "clear"
    )


def _stage(world: World, name: str, work: Path) -> list[str]:
    recipe = world.building.read_text().replace('"deletion"', '"hard_negatives"\nmodel = "STAGE"')
    recipe = recipe.replace('"STAGE"', json.dumps(name))
    stage = f'\n[first_stages.{json.dumps(name)}]\nrecipe = "simcse"\n'
    (work / "own.toml").write_text(recipe + stage)
    arguments = ["run", "own.toml", str(world.corpus), "--backbone", str(world.model)]
    return [*arguments, "--overwrite", "-o", "out"]


def _overwrite(world: World, record: str | None, work: Path, *, link: bool = False) -> list[str]:
    out = work / "out"
    out.mkdir()
    if link:
        (out / "model").symlink_to(f"../../{OUTSIDE}")
    else:
        (out / "model").mkdir()
        (out / "model" / "weights").write_text("precious")
    if record is not None:
        (out / "run.json").write_text(record)
    return [*world.train(), "--overwrite"]


# Variables


def _environment(world: World) -> Iterator[Trial]:
    variables: dict[str, dict[str, str | None]] = {
        "a launcher's alone": {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"},
        "a launcher's odd port": {
            "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "x", "MASTER_PORT": "port",
        },
        "a rank above all": {"WORLD_SIZE": "1", "RANK": "5", "LOCAL_RANK": "0"},
        **{
            f"{name}={value}": {name: value}
            for name, value in (
                ("ACCELERATE_USE_CPU", "perhaps"),
                ("ACCELERATE_TORCH_DEVICE", "toaster"),
                ("ACCELERATE_DYNAMO_BACKEND", "none of these"),
                ("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "many"),
                ("SOURCE_DATE_EPOCH", "yesterday"),
                ("SOURCE_DATE_EPOCH", "9" * 30),
            )
        },
    }  # fmt: skip
    for name, environment in variables.items():
        yield Trial("environment", name, lambda _: world.train(), "clear", environment)


# Packs

PACKS = {
    "exits": "import sys; sys.exit(0)",
    "exits at once": "import os\nraise SystemExit(3)",
    "raises": "1 / 0",
    "no pack": "PACK = 3",
    "no such name": "OTHER = 3",
    "no Python": "this is no Python",
    "escapes": f"raise ValueError({EVIL!r})",
}


def _packs(world: World) -> Iterator[Trial]:
    for name, code in PACKS.items():

        def prepared(work: Path, code: str = code) -> list[str]:
            import sys

            from opencse.text import languages

            (work / "own_pack.py").write_text(code)
            sys.path.insert(0, str(work))
            entry = EntryPoint("xx", "own_pack:PACK", "opencse.languages")
            languages.entry_points = lambda group: [entry]
            languages.language_packs.cache_clear()
            return ["build", str(world.building), str(world.corpus), "--workers", "1", "-o", "out"]

        yield Trial("packs", name, prepared, "clear")


# The terminal


def _terminal(world: World) -> Iterator[Trial]:
    build = ["build", str(world.building)]
    rest = ["--workers", "1", "-o", "out"]
    commands: dict[str, list[str]] = {
        "name of a model": ["evaluate", EVIL, "--pairs", str(world.pairs)],
        "name of a recipe": [
            "train",
            f"{EVIL}.toml",
            str(world.corpus),
            "--backbone",
            "x",
            "-o",
            "out",
        ],
        "name of a corpus": [*build, EVIL, *rest],
        "name of an output folder": [*build, str(world.corpus), *rest[:2], "-o", f"out{EVIL}"],
        "an override": [*world.train(), "--set", f"training.{EVIL}=1"],
        "a value": [*world.train(), "--set", f"training.epochs={EVIL}"],
        "a command": [EVIL],
        "an option": [*build, f"--{EVIL}"],
        "a column": [*build, str(world.pairs), "--column", EVIL, *rest],
    }
    for name, arguments in commands.items():
        yield Trial("terminal", name, lambda _, a=arguments: a, "either")
    files = {
        "keys of records": (f"{EVIL}.jsonl", json.dumps({EVIL: "a text", "other": "b"}) + "\n"),
        "keys of a recipe": ("own.toml", f"[{json.dumps(EVIL)}]\nx = 1\n"),
        "values of a recipe": ("own.toml", f"[training]\nprecision = {json.dumps('fp' + EVIL)}\n"),
        "cells of a table": ("own.tsv", f"text\tscore\n{EVIL}\t3\n"),
    }
    for name, (file, content) in files.items():

        def prepared(work: Path, file: str = file, content: str = content) -> list[str]:
            (work / file).write_text(content)
            if file.endswith(".toml"):
                return ["build", file, str(world.corpus), *rest]
            return [*build, file, *rest]

        yield Trial("terminal", name, prepared, "either")
