"""More of what strangers write: variants of the trials of models, documents, paths and variables."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.text.test_document_worker import TEXT, W, docx, pdf
from tests.trials import hostile
from tests.trials.hostile import EVIL, Change
from tests.trials.trial import Trial
from tests.trials.world import World

_CONFIG = "config.json"
_ABOUT = "config_sentence_transformers.json"
_POOLING = "1_Pooling/config.json"
_SETTINGS = "sentence_bert_config.json"
_TOKENIZER = "tokenizer_config.json"
_NAN = float("nan")
_LINES = b"".join(b"The cat number %d sits here.\n" % number for number in range(20))


def trials(world: World) -> Iterator[Trial]:
    """All variants, by family."""
    for name, change in _models().items():
        yield hostile._model_trial(world, name, change, "either")
    for name, content in _documents().items():
        yield hostile._document_trial(world, name, content, "either")
    yield from _folders(world)
    yield from _paths(world)
    yield from _environment(world)


# Models


def _set_inside(file: str, keys: Sequence[str], **values: Any) -> Change:
    """Set values in a table inside the table of a file."""

    def change(model: Path) -> None:
        path = model / file
        table = json.loads(path.read_text())
        node = table
        for key in keys:
            node = node.setdefault(key, {})
        node.update(values)
        path.write_text(json.dumps(table))

    return change


def _empty_weights(model: Path) -> None:
    hostile._pickled("pytorch_model.bin")(model)
    (model / "model.safetensors").touch()


def _linked_shard(model: Path) -> None:
    (model / "model.safetensors").rename(model.parent / "weights.safetensors")
    (model / "shard.safetensors").symlink_to(model.parent / "weights.safetensors")
    index = {"weight_map": {"a": "shard.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def _linked_folder(model: Path) -> None:
    shutil.move(model / "1_Pooling", model.parent / "pooling")
    (model / "1_Pooling").symlink_to(model.parent / "pooling")


def _huge_header(model: Path) -> None:
    path = model / "model.safetensors"
    path.unlink()
    with path.open("wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**40)


def _router_in_itself(model: Path) -> None:
    router = f"{hostile._TYPE}Router"
    (model / "r").mkdir()
    (model / "r" / "a").symlink_to("..")
    inner = {"types": {"a": router}, "structure": {"a": ["a"]}, "parameters": {}}
    outer = {"types": {"r": router}, "structure": {"r": ["r"]}, "parameters": {}}
    (model / "r" / "router_config.json").write_text(json.dumps(inner))
    (model / "router_config.json").write_text(json.dumps(outer))
    _modules(lambda table: [*table, {"idx": 2, "name": "2", "path": "r", "type": router}])(model)


def _modules(edit: Callable[[list[Any]], list[Any]]) -> Change:
    def change(model: Path) -> None:
        path = model / "modules.json"
        path.write_text(json.dumps(edit(json.loads(path.read_text()))))

    return change


def _more_tokens(count: int) -> Change:
    def change(model: Path) -> None:
        path = model / "tokenizer.json"
        table = json.loads(path.read_text())
        first = max(table["model"]["vocab"].values()) + 1
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        for number in range(first, first + count):
            table["added_tokens"].append({"id": number, "content": f"token{number}", **flags})
        path.write_text(json.dumps(table))

    return change


def _template(length: int, type_id: int, token: int) -> Change:
    special = {"SpecialToken": {"id": "[CLS]", "type_id": type_id}}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [token], "tokens": ["[CLS]"]}}
    pair = [sequence, {"Sequence": {"id": "B", "type_id": 1}}]
    processor = {"type": "TemplateProcessing", "single": [special] * length + [sequence]}
    processor |= {"pair": pair, "special_tokens": tokens}
    return hostile._set("tokenizer.json", post_processor=processor)


def _models() -> dict[str, Change]:
    changes: dict[str, Change] = {
        "pickled beside empty weights": _empty_weights,
        "shard that is a link": _linked_shard,
        "folder of a module that is a link": _linked_folder,
        "router in itself": _router_in_itself,
        "header of a terabyte": _huge_header,
        "adapter of a home folder": hostile._set("adapter_config.json", base_model_name_or_path="~/m"),
        "adapter of an address": hostile._set("adapter_config.json", base_model_name_or_path="https://h/x"),
        "300,000 more tokens": _more_tokens(300_000),
        "tokens without embeddings": _more_tokens(3),
        "a template of 100,000 tokens": _template(100_000, 0, 2),
        "a template without embeddings": _template(1, 77, 10**6),
        "kernel in an argument": _set_inside(_SETTINGS, ["model_args"], attn_implementation="owner/k"),
        "kernel by part": _set_inside(_SETTINGS, ["config_args"], attn_implementation={"": "owner/k"}),
        "kernel deep inside": _set_inside(_CONFIG, ["text_config", "x"], _attn_implementation="owner/k"),
        "kernel in pages": hostile._set(_CONFIG, attn_implementation="paged|owner/kernel"),
        "padding without bound": _set_inside(
            _SETTINGS, ["processing_kwargs", "text"], padding="max_length", max_length=10**9
        ),
        "code of the model": hostile._set(_CONFIG, auto_map={"AutoModel": "owner/name--modeling.X"}),
        "code of a module": hostile._set(_POOLING, auto_map={"AutoModel": "owner/name--m.X"}),
        "code of the tokenizer": hostile._set(_TOKENIZER, auto_map={"AutoTokenizer": ["own.X", None]}),
        "link in the type": hostile._set(_CONFIG, model_type="\x1b]8;;http://x\x1b\\bert\x1b]8;;\x1b\\"),
        "C1 in a key": hostile._set(_CONFIG, **{"\x9b31m\u202e": 10**30}),
        "escape in a library's message": hostile._set("tokenizer.json", model={"type": EVIL}),
        "pooling before the transformer": _modules(lambda table: table[::-1]),
        "transformer twice": _modules(lambda table: [table[0], table[0], table[1]]),
        "pooling alone": _modules(lambda table: table[1:]),
        "modules nested without end": lambda m: (m / "modules.json").write_text("[" * 100_000),
        "settings nested without end": lambda m: (m / _CONFIG).write_text('{"a":' * 50_000),
        "weights that are a folder": lambda m: (
            (m / "model.safetensors").unlink(),
            (m / "model.safetensors").mkdir(),
        ),
        "a device as vocabulary": lambda m: (
            (m / "vocab.txt").unlink(missing_ok=True),
            (m / "vocab.txt").symlink_to("/dev/zero"),
        ),
    }  # fmt: skip
    for shard in ("./../weights.safetensors", "a/../../weights.safetensors", "..\\w.safetensors"):
        changes[f"index names {shard}"] = hostile._index(shard)
    for file in (_POOLING, "special_tokens_map.json", "model.safetensors"):
        changes[f"pipe {file}"] = hostile._pipe(file)
    for path in (".", "1_Pooling\0x", "..\\x", "~/x"):
        changes[f"module at {path!r}"] = _modules(
            lambda table, path=path: [table[0], {**table[1], "path": path}]
        )
    for file, settings in _VALUES.items():
        for key, values in settings.items():
            for value in values:
                changes[f"{file}: {key} {value!r:.30}"] = hostile._set(file, **{key: value})
    return changes


_VALUES: dict[str, dict[str, list[Any]]] = {
    _CONFIG: {
        "hidden_size": [-5, 0, _NAN],
        "vocab_size": [-1, 0],
        "num_attention_heads": [0, -2, 7],
        "num_hidden_layers": ["12", 0, -1, _NAN, 1.5, 101],
        "pad_token_id": [10**9, -7],
        "max_position_embeddings": [0, -1],
        "layer_norm_eps": [_NAN, "x", -1],
        "hidden_act": ["os.system", ["gelu"], EVIL],
        "hidden_dropout_prob": [_NAN, -0.5, "x"],
        "dtype": ["os.system", "int8", "complex64"],
        "model_type": ["t5", "clip", "", 5],
        "chunk_size_feed_forward": [3, 10**6],
        "architectures": [["Evil"], EVIL],
        "intermediate_size": [-1],
        "pruned_heads": [{"0": [0]}],
    },
    _TOKENIZER: {
        "model_max_length": [-5, 0, "x", _NAN],
        "padding_side": ["up"],
        "truncation_side": [5],
        "tokenizer_class": ["../x", "os"],
        "vocab_file": ["/etc/passwd"],
        "tokenizer_file": ["/etc/passwd"],
        "added_tokens_decoder": [{"1000000000": {"content": "x"}}, {"-1": {"content": "x"}}],
        "chat_template": ["{% for i in range(10**9) %}x{% endfor %}"],
        "pad_token": [5, None],
    },
    _ABOUT: {
        "prompts": [{"q": EVIL}, [1], {"q": 5}],
        "default_prompt_name": ["nothing", 5],
        "similarity_fn_name": ["evil", ["cosine"], 5],
        "truncate_dim": [0, 1e308, True, _NAN],
        "model_type": ["SparseEncoder", EVIL],
        "__version__": ["x", {"sentence_transformers": "999.0"}],
    },
    _POOLING: {
        "pooling_mode": ["evil", []],
        "word_embedding_dimension": [10**8, -1],
        EVIL: [1],
    },
    _SETTINGS: {
        "max_seq_length": [10**9, -1, 0, 2, "x", _NAN],
        EVIL: [1],
    },
    "tokenizer.json": {
        "truncation": [{"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 10}],
        "padding": [
            {
                "strategy": {"Fixed": 2 * 10**9}, "direction": "Right", "pad_to_multiple_of": None,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
            }
        ],
        "pre_tokenizer": [
            {"type": "Split", "pattern": {"Regex": "(a+)+(b|c)+$"}, "behavior": "Isolated", "invert": False}
        ],
        "model": [None, {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 5}],
        "normalizer": [{"type": "Replace", "pattern": {"Regex": "."}, "content": ""}],
        "decoder": [{"type": "Evil"}],
    },
}  # fmt: skip


# Documents


def _assembled(*objects: bytes) -> bytes:
    """A PDF of these objects."""
    out = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj" % number + content + b"endobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    size = len(objects) + 1
    return out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, start)


def _pages(*kids: bytes) -> tuple[bytes, bytes]:
    return b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[" + b" ".join(
        kids
    ) + b"]>>"


def _packed_page() -> bytes:
    packed = zlib.compress(b"\0" * 300_000_000, 9)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"
    stream = b"<</Length %d/Filter/FlateDecode>>stream\n" % len(packed)
    return _assembled(*_pages(b"3 0 R"), page, stream + packed + b"\nendstream")


def _archive_in_archive() -> bytes:
    content = b"\0" * 5_000_000
    for _ in range(5):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(10):
                archive.writestr(f"{number}.docx", content)
        content = file.getvalue()
    return content


def _word(parts: Mapping[str, bytes]) -> bytes:
    """A Word document with parts replaced or added."""
    new = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx(TEXT))) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (contents | dict(parts)).items():
            archive.writestr(name, content)
    return new.getvalue()


def _relation(target: str, kind: str, more: str = "") -> bytes:
    schema = "http://schemas.openxmlformats.org"
    return (
        f'<?xml version="1.0"?><Relationships xmlns="{schema}/package/2006/relationships"><Relationship '
        f'Id="r" Target="{target}" {more} Type="{schema}/officeDocument/2006/relationships/{kind}"/>'
        "</Relationships>"
    ).encode()


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _documents() -> dict[str, bytes]:
    spaces = f'<?xml version="1.0"?><w:document {W}><w:body>{TEXT}'.encode() + b" " * 200_000_000
    entity = "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>"
    cells = ["A cat sits."] * 20
    return {
        "archives.docx": _archive_in_archive(),
        "spaces.docx": _word({"word/document.xml": spaces + b"</w:body></w:document>"}),
        "file-entity.docx": docx(entity, start='<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        "host-entity.docx": docx(entity, start='<!DOCTYPE d [<!ENTITY x SYSTEM "http://host/x">]>'),
        "dtd.docx": docx(TEXT, start='<!DOCTYPE d SYSTEM "http://host/x.dtd">'),
        "template.docx": _word(
            {
                "word/_rels/document.xml.rels": _relation(
                    "http://host/x", "attachedTemplate", 'TargetMode="External"'
                )
            }
        ),
        "outside.docx": _word({"_rels/.rels": _relation("../../etc/passwd", "officeDocument")}),
        "deep.docx": docx("<w:p>" * 5000 + "</w:p>" * 5000),
        "long.docx": docx(f"<w:p><w:r><w:t>{'a' * 20_000_000}</w:t></w:r></w:p>"),
        "packed.pdf": _packed_page(),
        "loop.pdf": _assembled(*_pages(b"2 0 R")),
        "own-parent.pdf": _assembled(*_pages(b"3 0 R"), b"<</Type/Page/Parent 3 0 R>>"),
        "no-pages.pdf": _assembled(b"<</Type/Catalog/Pages 2 0 R>>", b"2 0 R"),
        "tables-in-a-ring.pdf": pdf(1).replace(b"trailer<<", b"trailer<</Prev 9 "),
        "deep.pdf": b"%PDF-1.4\n1 0 obj" + b"<</a" * 20_000,
        **{f"empty.{kind}": b"" for kind in ("pdf", "docx", "md", "jsonl", "csv", "parquet", "txt.gz")},
        "zeros.txt.gz": gzip.compress(b"\0" * 200_000_000, 9),
        "zeros.jsonl.gz": gzip.compress(b"\0" * 200_000_000, 9),
        "twice.txt.gz": gzip.compress(gzip.compress(_LINES)),
        "cut.txt.gz": gzip.compress(_LINES * 50)[:60],
        "members.txt.gz": gzip.compress(_LINES) * 3,
        "more.txt.gz": gzip.compress(_LINES) + b"garbage",
        "sum.txt.gz": gzip.compress(_LINES)[:-8] + b"\0" * 8,
        "a.jsonl.zst": b"\x28\xb5\x2f\xfd" + b"x" * 50,
        "line.txt": b"a" * 50_000_000,
        "line.jsonl": b'{"text":"' + b"a" * 50_000_000 + b'"}\n',
        "field.csv": b'text\n"' + b"a,\n" * 5_000_000,
        "words.md": b"a " * 3_000_000,
        "deep.jsonl": b'{"text":"A cat.","a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
        "objects.jsonl": b'{"a":' * 100_000 + b"\n",
        "number.jsonl": b'{"text":"x y","n":' + b"9" * 5000 + b"}\n",
        "surrogate.jsonl": b'{"text":"a \\ud800 b"}\n' * 20,
        "escape.jsonl": b'{"text":"a \\u001b[2J b"}\n' * 20,
        "columns.csv": b",".join(b"c%d" % i for i in range(100_000)) + b"\n" + b"x," * 99_999 + b"x\n",
        "ragged.csv": b"text,b\n" + b"a cat,1\na dog,2,3,4\nb\n" * 20,
        "same-names.csv": b"text,text\n" + b"a one,b two\n" * 5,
        "nul.csv": b"text\na\0b\n",
        "bidi.txt": "The \u202ecat\u2066 sits.\n".encode() * 20,
        "references.md": b"".join(b"[a%d]: [a%d]\n" % (i, i + 1) for i in range(20_000)),
        "ticks.md": b"`" * 60_000,
        "links.md": b"[a](b" * 20_000,
        "cells.md": b"|a" * 50_000 + b"\n" + b"|-" * 50_000 + b"\n",
        "entities.md": b"&" * 100_000,
        "nested.md": b"* " * 20_000 + b"a",
        "anchors.md": b"---\na: &a [x,x]\nb: &b [*a,*a,*a]\n---\nThe cat sits here today.\n",
        "attributes.html": b"<p " + b"a=b " * 300_000 + b">x",
        "comments.html": b"<!--" * 100_000,
        "sections.html": b"<![CDATA[" * 50_000,
        "title.html": b"<title>" + EVIL.encode() + b"</title><p>The cat sits here.</p>",
        "span.html": b"<table><tr><td colspan=1000000000>The cat sits here.</td></tr></table>",
        "nested.parquet": _parquet(pa.table({"text": [{"a": "x"}] * 20})),
        "lists.parquet": _parquet(pa.table({"text": [["a b", "c"]] * 20})),
        "bytes.parquet": _parquet(pa.table({"text": pa.array([b"\xff\xfe"] * 20)})),
        "nothing.parquet": _parquet(pa.table({})),
        "key.parquet": _parquet(pa.table({EVIL: cells})),
        "repeated.parquet": _parquet(
            pa.table({"text": pa.array(["x" * 1_000_000] * 1000).dictionary_encode()})
        ),
        "metadata.parquet": _parquet(
            pa.table({"text": cells}).replace_schema_metadata({EVIL: EVIL, "opencse": "{"})
        ),
        "--help.txt": _LINES,
        "a\nb.txt": _LINES,
        f"{EVIL}.txt": b"\xff",
    }  # fmt: skip


def _folders(world: World) -> Iterator[Trial]:
    build = ["build", str(world.building)]
    rest = ["--workers", "1", "-o", "out"]
    for name, make in FOLDERS.items():

        def prepared(work: Path, make: Change = make) -> list[str]:
            folder = work / "docs"
            folder.mkdir()
            (folder / "a.txt").write_bytes(_LINES)
            make(folder)
            return [*build, "docs", *rest]

        yield Trial("documents", f"folder with {name}", prepared)
    for path in (
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
        "/dev",
        "..",
        "~",
        "a\0b",
        "hub:../x",
    ):
        yield Trial("documents", f"path {path!r}", lambda _, path=path: [*build, path, *rest])


def _odd_name(folder: Path) -> None:
    with open(os.fsencode(folder) + b"/\xff.txt", "wb") as file:
        file.write(_LINES)


def _other_columns(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.parquet").write_bytes(_parquet(pa.table({"text": ["A cat sits."] * 20})))
    (folder / "b.parquet").write_bytes(_parquet(pa.table({"txt": ["A dog."] * 20})))


FOLDERS: dict[str, Change] = {
    "a link to itself": lambda folder: (folder / "b").symlink_to("."),
    "a pipe": lambda folder: os.mkfifo(folder / "b.txt"),
    "a device": lambda folder: (folder / "z.txt").symlink_to("/dev/zero"),
    "a link that leads out": lambda folder: (folder / "b.txt").symlink_to("/etc/passwd"),
    "a folder named as a file": lambda folder: (folder / "b.txt").mkdir(),
    "a name that steers": lambda folder: (folder / f"{EVIL}.txt").write_bytes(b"\xff\xfe\xff"),
    "a name that is no text": _odd_name,
    "tables of other columns": _other_columns,
}


# Paths


def _paths(world: World) -> Iterator[Trial]:
    train = world.train()
    run = [*world.commands()["run"], "-o", "out"]
    bare = [str(world.corpus), "-o", "out"]
    odd = ("/dev/zero", "/proc/self/mem", ".", "a\0b", EVIL, "", "~/x", "http://host/x")
    for path in odd:  # no name of a model on a hub, which may be asked for
        yield _plain("paths", f"--dev {path!r}", [*train, "--dev", path])
        yield _plain("paths", f"--pairs {path!r}", [*run, "--pairs", path])
        recipe = ["train", path, *bare, "--backbone", str(world.model)]
        yield _plain("paths", f"recipe {path!r}", recipe)
        model = ["train", str(world.recipe), *bare, "--backbone", path]
        yield _plain("paths", f"backbone {path!r}", model)
    for path in ("simcse\0", "sim\\cse", "../simcse", "simcse/"):
        recipe = ["train", path, *bare, "--backbone", str(world.model)]
        yield _plain("paths", f"recipe {path!r}", recipe)
    pipes = {
        "--dev": [*train, "--dev", "pipe.tsv"],
        "--pairs": [*run, "--pairs", "pipe.tsv"],
        "recipe": ["train", "pipe.toml", *bare, "--backbone", str(world.model)],
        "model": ["evaluate", "pipe", "--pairs", str(world.pairs)],
    }
    for name, arguments in pipes.items():
        yield Trial("paths", f"a pipe as {name}", partial(_with_pipes, arguments))
    for name in ("a\\b", "a\0b", "C:x", EVIL, ".", "~", "a" * 300):
        yield Trial("paths", f"stage {name!r:.30}", partial(hostile._stage, world, name))
    for section in ("views", "build", "teachers"):
        for name in ("../x", "a\\b", EVIL, ""):
            named = partial(_named_part, world, section, name)
            yield Trial("paths", f"{section} {name!r}", named)
    for out in (".", "..", "../outside", "./", "out/..", "model", "keep.txt", str(world.model)):
        yield Trial("paths", f"overwrite {out}", partial(_overwrite_there, world, out), "clear")
    for out in (".", "model", "nothing/at/all.json", "x\0y", EVIL):
        scores = ["evaluate", str(world.encoder), "--pairs", str(world.pairs), "-o", out]
        yield Trial("paths", f"scores into {out!r}", partial(_beside_files, scores))


def _plain(family: str, name: str, arguments: list[str], **settings: Any) -> Trial:
    return Trial(family, name, lambda _: arguments, **settings)


def _with_pipes(arguments: list[str], work: Path) -> list[str]:
    for name in ("pipe", "pipe.tsv", "pipe.toml"):
        os.mkfifo(work / name)
    return arguments


def _named_part(world: World, section: str, name: str, work: Path) -> list[str]:
    settings = {"views": 'text = "more"', "build": 'kind = "deletion"', "teachers": 'model = "x"'}
    part = f"\n[{section}.{json.dumps(name)}]\n{settings[section]}\n"
    (work / "own.toml").write_text(world.building.read_text() + part)
    arguments = ["run", "own.toml", str(world.corpus), "--backbone", str(world.model)]
    return [*arguments, "-o", "out"]


def _beside_files(arguments: list[str], work: Path) -> list[str]:
    (work / "model").mkdir()
    (work / "model" / "weights").write_text("precious")
    (work / "keep.txt").write_text("precious")
    return arguments


def _overwrite_there(world: World, out: str, work: Path) -> list[str]:
    arguments = ["train", str(world.recipe), str(world.corpus), "--backbone", str(world.model)]
    return _beside_files([*arguments, "--overwrite", "-o", out], work)


# Variables


def _environment(world: World) -> Iterator[Trial]:
    for name, values in VARIABLES.items():
        for value in values:
            environment: dict[str, str | None] = {name: value}
            yield _plain("environment", f"{name}={value!r}", world.train(), environment=environment)


VARIABLES = {
    "ACCELERATE_MIXED_PRECISION": ("foo", "fp8", "fp16"),
    "ACCELERATE_USE_CPU": ("",),
    "ACCELERATE_USE_DEEPSPEED": ("true",),
    "ACCELERATE_USE_MEGATRON_LM": ("true",),
    "ACCELERATE_TORCH_DEVICE": ("cuda:99", "meta", ""),
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": ("0", "4"),
    "ACCELERATE_CPU_AFFINITY": ("x",),
    "WORLD_SIZE": ("2", "-1", "x"),
    "LOCAL_RANK": ("5", "x"),
    "MASTER_PORT": ("5",),
    "COLUMNS": ("0", "-5", "x", "999999999"),
    "TERM": ("dumb", EVIL),
    "CUDA_VISIBLE_DEVICES": ("foo",),
    "HF_HOME": ("/proc",),
    "HOME": ("", "relative"),
    "TZ": ("bogus", "../../etc/passwd"),
    "TMPDIR": ("relative",),
    "OPENCSE_DATA": ("/dev/null", "a\x1b[2Jb", "/nowhere"),
    "OPENCSE_CACHE": ("~", "a\x1b[2Jb"),
    "SOURCE_DATE_EPOCH": ("-1", "", " 5", "\u0665"),
    "LC_ALL": ("bogus",),
    "_OPENCSE_COMPLETE": ("complete_bash",),
}
