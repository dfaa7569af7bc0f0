"""What is read from outside: a whole example of each format, and its reader, for the fuzzer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tiny import WORDS, tiny_bert

Reader = Callable[[Path], object]
TEXTS = [f"{a} {b} {c}" for a, b, c in zip(WORDS, WORDS[1:], WORDS[2:], strict=False)]


@dataclass(frozen=True)
class Format:
    """A file that is read, in a folder with everything that its reader needs.

    Attributes:
        name: What it is.
        file: The file.
        content: Its whole bytes.
        read: Reads it; may return or raise `OpencseError`.
        sealed: A folder whose checksums are written anew after a change, so that the change gets past them.
    """

    name: str
    file: Path
    content: bytes
    read: Reader
    sealed: Path | None = None


def all_formats(folder: Path) -> list[Format]:
    """Write an example of each format below a folder."""
    found = []
    for number, (name, content, read) in enumerate(_files()):
        path = folder / str(number) / name
        path.parent.mkdir()
        path.write_bytes(content)
        found.append(Format(f"{number} {name}", path, content, read))
    for path, read, *sealed in (*_guards(folder), *_model(folder), *_checkpoint(folder)):
        name = str(path.relative_to(folder)) + ", sealed anew" * len(sealed)
        found.append(Format(name, path, path.read_bytes(), read, *sealed))
    return found


def _files() -> Iterator[tuple[str, bytes, Reader]]:
    """Yield formats of one file: its name, an example, and its reader."""
    from opencse.evaluation.sts import read_pairs
    from opencse.evaluation.triplets import read_triplets
    from opencse.recipes import dump_recipe, load_recipe
    from opencse.text.documents import Documents

    def passages(path: Path) -> None:
        list(Documents(path).passages())

    few = TEXTS[:20]
    lines = "".join(json.dumps({"text": t + " é", "more": [1, {"a": None}]}) + "\n" for t in TEXTS)
    table = "sentence1\tsentence2\tscore\n" + "".join(f"{t}\ta cat\t1.5\n" for t in few)
    html = "".join(f"<h2>{t}</h2><p title='a'>{t} &amp; &#233; more.<!-- x --></p>" for t in TEXTS)
    markdown = "---\ntitle: x\n---\n" + "".join(f"# {t}\n\n{t}, **so** it is. `code`\n\n```\nx\n```\n" for t in TEXTS)
    texts: list[tuple[str, str, Reader]] = [
        ("c.txt", "\n".join(TEXTS), _corpus),
        ("c.csv", "text,more\n" + "".join(f'"{t}","a ""b"""\n' for t in TEXTS), _corpus),
        ("c.tsv", "text\tmore\n" + "".join(f"{t}\tb\n" for t in TEXTS), _corpus),
        ("c.jsonl", lines, _corpus),
        ("d.html", html, passages),
        ("d.md", markdown, passages),
        (
            "short.toml",
            'extends = "simcse"\n[training]\nseed = 3\n[for.other]\nterms.info_nce.weight = 2\n',
            load_recipe,
        ),
        ("whole.toml", dump_recipe(load_recipe("debias")), load_recipe),
        ("pairs.tsv", table, read_pairs),
        ("pairs.csv", table.replace("\t", ","), read_pairs),
        (
            "triplets.tsv",
            "id\tkind\tanchor\tpositive\tnegative\n" + "".join(f"{t}\tk\t{t} a\t{t} b\t{t} c\n" for t in few),
            read_triplets,
        ),
    ]
    yield from ((name, text.encode(), read) for name, text, read in texts)
    yield "c.jsonl.gz", gzip.compress(lines.encode(), mtime=0), _corpus
    for codec in ("zstd", "snappy", "none"):
        yield f"{codec}.parquet", parquet({"text": TEXTS, "more": [None, *TEXTS[1:]]}, compression=codec), _corpus


def parquet(columns: object, **options: str) -> bytes:
    """The bytes of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), sink, **options)
    return sink.getvalue().to_pybytes()


def _corpus(path: Path) -> None:
    from opencse.text.corpus import Corpus

    for text in Corpus(path).texts():
        text.encode()


def _guards(folder: Path) -> Iterator[tuple[Path, Reader]]:
    from opencse.evaluation.guard import load_guard

    tables = {
        "questions": "group\tquestion\n" + "".join(f"{i // 2}\t{t}?\n" for i, t in enumerate(TEXTS[:20])),
        "answers": "question\tpassage\n" + "".join(f"{t}?\t{t}.\n" for t in TEXTS[:20]),
        "topics": "topic\ttext\n" + "".join(f"{i % 2}\t{t}\n" for i, t in enumerate(TEXTS[:40])),
        "long": "summary\ttext\n" + "".join(f"{t}\t{t} and so it was. {t} but not so.\n" for t in TEXTS[:20]),
    }
    for name, text in tables.items():
        path = folder / f"guard-{name}" / f"{name}.tsv"
        path.parent.mkdir()
        path.write_text(text)
        yield path, lambda path: load_guard(path.parent)


def _model(folder: Path) -> Iterator[tuple[Path, Reader]]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    transformer = Transformer(str(tiny_bert(folder / "tiny")))
    model = SentenceTransformer(modules=[transformer, Pooling(transformer.get_embedding_dimension())], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    for path in sorted(path for path in (folder / "model").rglob("*") if path.suffix in (".json", ".safetensors")):
        yield path, lambda _: _encode(folder / "model")


def _encode(folder: Path) -> None:
    import numpy as np

    from opencse.encoder.embedder import Embedder
    from opencse.encoder.loading import load_encoder

    vectors = Embedder(load_encoder(folder, device="cpu"), precision="fp32").encode(["a cat sits", "the dog"])
    assert np.isfinite(vectors).all(), "vectors that are not finite"


def _checkpoint(folder: Path) -> Iterator[tuple[Path, Reader] | tuple[Path, Reader, Path]]:
    """Yield each file of a checkpoint, damaged and forged."""
    import torch

    from opencse.training.checkpoint import Checkpoints, TrainingState

    network = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    store = Checkpoints(folder / "checkpoints", {"recipe": "a", "corpus": "b"})
    saved = store.save(network, optimizer, [torch.get_rng_state()], TrainingState(step=3, best_score=70.5))

    def restore(_: Path) -> None:
        path = store.latest()
        assert path is not None
        store.load(path, network, optimizer)

    for file in sorted(saved.iterdir()):
        yield file, restore
        if file.name != "checksums.json":
            yield file, restore, saved
