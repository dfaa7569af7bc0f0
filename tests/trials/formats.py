"""Every format that is read: a whole example in a folder of its own, and its reader, for the fuzzer."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tiny import WORDS, tiny_bert
from tests.trials import own_formats

Reader = Callable[[Path], object]
TEXTS = [f"{a} {b} {c}" for a, b, c in zip(WORDS, WORDS[1:], WORDS[2:], strict=False)]


@dataclass(frozen=True)
class Format:
    """A file that is read, in a folder with everything that its reader needs.

    Attributes:
        name: What it is, for the table.
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
    kinds = (_corpora, _documents, _settings, _tables, _folders, _models, own_formats.examples)
    found = []
    for kind in kinds:
        for name, file, read, *sealed in kind(folder):
            found.append(Format(name, file, file.read_bytes(), read, *sealed))
    return found


def _written(folder: Path, name: str, content: bytes) -> Path:
    """Write a file into a folder that has no other."""
    path = folder / name.replace(".", "-") / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def _corpora(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Dataset, disable_progress_bars

    plain = "\n".join(TEXTS).encode()
    lines = "".join(json.dumps({"text": t + " é", "more": [1, {"a": None}]}) + "\n" for t in TEXTS).encode()
    contents = {
        "c.txt": plain,
        "c.txt.gz": gzip.compress(plain, mtime=0),
        "c.csv": b"text,more\n" + "".join(f'"{t}","a ""b"""\n' for t in TEXTS).encode(),
        "c.tsv": b"text\tmore\n" + "".join(f"{t}\tb\n" for t in TEXTS).encode(),
        "c.jsonl": lines,
        "c.jsonl.gz": gzip.compress(lines, mtime=0),
    }
    for name, content in contents.items():
        yield f"corpus {name[1:]}", _written(folder, name, content), _corpus
    for codec in ("zstd", "snappy", "none"):
        path = _written(folder, f"{codec}.parquet", b"")
        pq.write_table(pa.table({"text": TEXTS, "more": [None, *TEXTS[1:]]}), path, compression=codec)
        yield f"corpus .parquet ({codec})", path, _corpus
    disable_progress_bars()
    Dataset.from_dict({"text": TEXTS}).save_to_disk(folder / "saved")
    for path in sorted((folder / "saved").iterdir()):
        yield f"corpus of datasets: {path.name}", path, lambda path: _corpus(path.parent)


def _corpus(path: Path) -> None:
    from opencse.io.corpus import column_names, read_texts

    column_names(path)
    for text in read_texts(path):
        text.encode()


def _documents(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    from opencse.data.documents import Documents
    from opencse.data.user_text import collect_queries

    html = "".join(f"<h2>{t}</h2><p title='a'>{t} &amp; &#233; more.<!-- x --></p>" for t in TEXTS)
    markdown = "---\ntitle: x\n---\n" + "".join(f"# {t}\n\n{t}, **so** it is. `code`\n\n```\nx\n```\n" for t in TEXTS)
    for name, text in (("d.html", html), ("d.md", markdown), ("d.txt", "\n".join(TEXTS))):
        yield (
            f"documents {name[1:]}",
            _written(folder, name, text.encode()),
            lambda path: list(Documents(path).passages()),
        )
    yield "queries .csv", _written(folder, "q.csv", b"query\n" + "\n".join(TEXTS).encode()), collect_queries


_RECIPE = b"""
extends = "simcse"
[training]
seed = 3
[for.other]
terms.contrastive.temperature = 0.1
"""


def _settings(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    from opencse.recipes import dump_recipe, load_recipe

    yield "recipe, short", _written(folder, "short.toml", _RECIPE), load_recipe
    whole = dump_recipe(load_recipe("debias")).encode()
    yield "recipe, whole", _written(folder, "whole.toml", whole), load_recipe


def _tables(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    from opencse.data.labels import read_labels
    from opencse.data.paraphrases import paraphrase_columns
    from opencse.evaluation.pairs import read_pairs
    from opencse.evaluation.triplets import read_triplets
    from opencse.views.generation.candidate_table import CandidateTable

    def paraphrases(path: Path) -> None:
        text, candidate = paraphrase_columns(path)
        CandidateTable(path=str(path), text_column=text, candidate_column=candidate).open()

    pairs = b"sentence1\tsentence2\tscore\n" + "".join(f"{t}\ta cat\t1.5\n" for t in TEXTS[:20]).encode()
    labels = [("same", "opposite")[i % 2] for i in range(20)]
    judged = "sentence1,sentence2,score\n" + "".join(f'"{t}",yes,1\n"{t}",no,0\n' for t in TEXTS[:20])
    rows = [{"sentence1": t, "sentence2": f"not {t}", "label": x} for t, x in zip(TEXTS, labels, strict=False)]
    table = "sentence1\tsentence2\tlabel\n" + "".join("\t".join(row.values()) + "\n" for row in rows)
    triplets = "id\tkind\tanchor\tpositive\tnegative\n" + "".join(f"{t}\tk\t{t} a\t{t} b\t{t} c\n" for t in TEXTS[:20])
    said = "text,paraphrase\n" + "".join(f'"{t}","{t} too"\n' for t in TEXTS[:20])
    yield "scored pairs .tsv", _written(folder, "pairs.tsv", pairs), read_pairs
    yield "scored pairs .csv", _written(folder, "pairs.csv", pairs.replace(b"\t", b",")), read_pairs
    yield "labels .tsv", _written(folder, "labels.tsv", table.encode()), read_labels
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    yield "labels .jsonl", _written(folder, "labels.jsonl", lines.encode()), read_labels
    yield "judged searches .csv", _written(folder, "judgements.csv", judged.encode()), read_labels
    yield "triplets .tsv", _written(folder, "triplets.tsv", triplets.encode()), read_triplets
    yield "paraphrases .csv", _written(folder, "said.csv", said.encode()), paraphrases


def _folders(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """Yield folders of several tables: guards, classification, retrieval, STS."""
    from opencse.evaluation.guard import load_guard
    from opencse.evaluation.labelled_sources import load_labelled
    from opencse.evaluation.ranking_sources import load_retrieval
    from opencse.evaluation.sts_sources import load_sts

    guard = {
        "questions": "group\tquestion\n" + "".join(f"{i // 2}\t{t}?\n" for i, t in enumerate(TEXTS[:20])),
        "answers": "question\tpassage\n" + "".join(f"{t}?\t{t}.\n" for t in TEXTS[:20]),
        "topics": "topic\ttext\n" + "".join(f"{i % 2}\t{t}\n" for i, t in enumerate(TEXTS[:40])),
        "long": "summary\ttext\n" + "".join(f"{t}\t{t} and so it was. {t} but not so.\n" for t in TEXTS[:20]),
    }
    for name, text in guard.items():
        path = _written(folder / "guard", f"{name}.tsv", text.encode())
        yield f"guard {name}.tsv", path, lambda path: load_guard(path.parent)
    classes = "label\ttext\n" + "".join(f"{i % 2}\t{t}\n" for i, t in enumerate(TEXTS[:20]))
    path = _written(folder / "classes", "train.tsv", classes.encode())
    yield "classification .tsv", path, lambda path: load_labelled(path.parent.parent, path.parent.name)
    found = folder / "beir" / "task"
    (found / "qrels").mkdir(parents=True)
    texts = {"corpus": TEXTS[:20], "queries": TEXTS[20:30]}
    for name, kept in texts.items():
        lines = "".join(json.dumps({"_id": f"{name[0]}{i}", "text": t}) + "\n" for i, t in enumerate(kept))
        (found / f"{name}.jsonl").write_text(lines)
    grades = "".join(f"q{i}\tc{i}\t1\n" for i in range(10))
    (found / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        yield f"retrieval {name}", found / name, lambda _: load_retrieval(folder / "beir", "task")
    sts = "sentence1_senteval\tsentence2_senteval\tscore\n" + "".join(f"{t}\ta cat\t1.5\n" for t in TEXTS[:20])
    path = _written(folder / "sts", "test.tsv", sts.encode())
    path = path.rename(_moved(folder / "sts" / "SICK-R" / "test.tsv"))
    yield "STS task .tsv", path, lambda _: load_sts(folder / "sts", tasks=["SICK-R"])


def _moved(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _models(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    from opencse.models.provenance import base_model

    transformer = Transformer(str(tiny_bert(folder / "tiny")))
    model = SentenceTransformer(modules=[transformer, Pooling(transformer.get_embedding_dimension())], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    shutil.rmtree(folder / "tiny")
    (folder / "model" / "README.md").write_text("---\nbase_model: a/b\nlicense: mit\ntags:\n- x\n---\n# A model\n")
    names = ("config.json", "config_sentence_transformers.json", "modules.json", "sentence_bert_config.json")
    names += ("tokenizer.json", "tokenizer_config.json", "model.safetensors", "1_Pooling/config.json")
    for name in names:
        if (folder / "model" / name).is_file():
            yield f"model {name}", folder / "model" / name, lambda _: _encoded(folder / "model")
    yield "model README.md", folder / "model" / "README.md", lambda path: base_model(path.parent)


def _encoded(folder: Path) -> None:
    import numpy as np

    from opencse.encoder.embedder import Embedder
    from opencse.encoder.loading import load_encoder

    vectors = Embedder(load_encoder(folder, device="cpu"), precision="fp32").encode(["a cat sits", "the dog"])
    assert np.isfinite(vectors).all(), "vectors that are not finite"
