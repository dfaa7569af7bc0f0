"""The files that opencse writes and reads back, for the fuzzer: runs, checkpoints, views, cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

Reader = Callable[[Path], object]


def examples(folder: Path) -> Iterator[tuple[str, Path, Reader] | tuple[str, Path, Reader, Path]]:
    """Yield name, file and reader of each; and the folder to seal again after a change, where there is one."""
    yield from _runs(folder / "runs")
    yield from _checkpoints(folder)
    yield from _views(folder)
    yield from _cache(folder)


def _runs(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    from opencse.comparison.run_groups import group_runs, read_run
    from opencse.recipes import dump_recipe, load_recipe
    from opencse.runs.folder import begun_step_limit, read_record
    from opencse.runs.log import MetricsLog
    from opencse.runs.settled_precision import begun_precision

    record = {"recipe": "simcse", "variant": "sound", "family": "bert", "backbone": "b", "seed": 1, "rows": 9}
    record |= {"fingerprint": {"corpus": "c", "backbone": "w"}, "precision": "fp32"}
    record |= {"step_limit": 25}
    record |= {"outcome": {"steps": 3, "seconds": 1.5, "best_score": 70.5}}
    scores = {"sts": {"tasks": [{"task": "STS-B", "main": "spearman", "metrics": {"spearman": 70.1}}]}}
    files = {
        "run.json": json.dumps(record, indent=1),
        "recipe.toml": dump_recipe(load_recipe("simcse")),
        "results.json": json.dumps({"before": scores, "after": scores}, indent=1),
        "metrics.jsonl": "".join(json.dumps({"step": i, "loss": 1 / i, "dev": 70.0 + i}) + "\n" for i in range(1, 9)),
    }
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")

    def recorded(path: Path) -> None:
        begun_step_limit(path.parent), begun_precision(path.parent)
        read_record(path.parent)

    for name in files:
        if name != "metrics.jsonl":
            yield f"compared {name}", folder / name, lambda path: group_runs([read_run(path.parent)])
    yield "resumed run.json", folder / "run.json", recorded
    yield "resumed metrics.jsonl", folder / "metrics.jsonl", lambda path: MetricsLog(path, 5).close()


def _checkpoints(folder: Path) -> Iterator[tuple[str, Path, Reader] | tuple[str, Path, Reader, Path]]:
    import torch

    from opencse.runs.checkpoint import Checkpoints, TrainingState, check_weights, save_weights

    network = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    store = Checkpoints(folder / "checkpoints", 2, {"recipe": "a", "corpus": "b"})
    saved = store.save(network, optimizer, [torch.get_rng_state()], TrainingState(step=3, best_score=70.5))

    def restored(_: Path) -> None:
        path = store.latest()
        assert path is not None
        store.load(path, network, optimizer)

    for file in sorted(saved.iterdir()):
        yield f"checkpoint {file.name}", file, restored
        if file.name != "checksums.json":
            yield f"checkpoint {file.name}, sealed anew", file, restored, saved
    save_weights(network, folder / "best.safetensors")
    yield "weights best.safetensors", folder / "best.safetensors", check_weights


def _views(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from opencse.io.corpus import column_names, read_rows
    from opencse.io.parquet import parquet_metadata
    from opencse.views.storage import HEADER, built_columns, read_header

    texts = [f"sentence {i} of the views" for i in range(60)]
    columns = {"text": texts, "negation": [None, *texts[1:]], "negation.rule": ["none", *["not"] * 59]}

    def built(path: Path) -> None:
        read_header(path), built_columns(path)
        _rows(path)

    def _rows(path: Path) -> None:
        for row in read_rows(path, column_names(path)):
            "".join(cell or "" for cell in row).encode()

    def prepared(path: Path) -> None:
        parquet_metadata(path)
        _rows(path)

    for name, key, read in (
        ("views", HEADER, built),
        ("labelled", b"other", prepared),
        ("mixture", b"made_from", prepared),
    ):
        table = pa.table(columns).replace_schema_metadata({key: b'{"format": 1}'})
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, write_page_checksum=True)
        yield f"{name}.parquet", path, read


def _cache(folder: Path) -> Iterator[tuple[str, Path, Reader] | tuple[str, Path, Reader, Path]]:
    """Entries of the cache: a damaged one is made again, one that was sealed anew is refused or read."""
    import numpy as np

    from opencse.data.token_store import TokenStore
    from opencse.io.checksums import find_damage, write_checksums
    from opencse.views.generation.prompted_llm import _Cache
    from opencse.views.sentence_store import SentenceStore, _write

    tokens, sentences = folder / "tokens", folder / "sentences"
    tokens.mkdir(), sentences.mkdir()
    lengths = np.array([3, 2, -1, 4], dtype=np.int32)
    lengths.tofile(tokens / "0.lengths")
    np.arange(9, dtype=np.uint16).tofile(tokens / "0.ids")
    meta = {"rows": 4, "skipped": 0, "sources": 1, "dtype": "uint16", "corpus_hash": "c"}
    (tokens / "meta.json").write_text(json.dumps(meta))
    _write(sentences, [f"sentence {i}" for i in range(9)], "hash")

    def read_tokens(path: Path) -> None:
        if not find_damage(path.parent):
            store = TokenStore(path.parent)
            [store.ids(0, row) for row in range(store.rows)]

    def read_sentences(path: Path) -> None:
        if not find_damage(path.parent):
            store = SentenceStore(path.parent)
            len(store.keys), store.range(0, 9)

    for place, read in ((tokens, read_tokens), (sentences, read_sentences)):
        write_checksums(place)
        for file in sorted(place.iterdir()):
            yield f"cache {place.name}/{file.name}", file, read
    answers = folder / "answers.jsonl"
    answers.write_text("".join(json.dumps({"key": str(i), "text": "yes"}) + "\n" for i in range(9)))
    yield "cache of answers .jsonl", answers, lambda path: _Cache(str(path))
