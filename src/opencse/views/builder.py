"""The builder: constructors over a whole corpus, into a folder of Parquet parts that a kill cannot spoil."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.views.base import Constructor, ConstructorSpec, Row, View

UNIT = 512  # rows that one process builds together: batches form within them, whatever the number of workers
PART_ROWS = 16 * UNIT


def build(
    corpus_path: str | Path,
    specs: Mapping[str, ConstructorSpec],
    out_dir: str | Path,
    *,
    seed: int = 0,
    workers: int | None = None,
    resume: bool = True,
    progress: bool = True,
    rows_per_part: int = PART_ROWS,
    column: str = "text",
) -> Path:
    """Build columns of related sentences.

    Writes `part-00000-of-00012.parquet` and so on, each whole or not at all: `id`, `text`, and for each built column
    `NAME` (null where the constructor could not do its job), `NAME.rule` and its scores. The schema's metadata holds the
    header: hash of the texts, version, parameters, hashes of weights. The bytes depend on nothing else, in particular not
    on the number of workers, nor on how often the build was stopped and resumed.

    Args:
        corpus_path: Sentences, in any format that `opencse.text` reads; blank ones are left out.
        specs: Constructors by column name.
        out_dir: Where the parts go.
        seed: The only source of chance.
        workers: Processes; None for one per core.
        resume: Keep the parts that are there if their header is the same; if not, start afresh.
        progress: Show a progress bar with the time left, where standard error is a terminal.
        rows_per_part: Rows in a part: what is done again after a kill is at most the parts under way.
        column: Column of the corpus that holds the sentence.

    Returns:
        `out_dir`.

    Raises:
        OpencseError: The corpus cannot be read, a constructor cannot be opened, or the folder holds other views.
    """
    from opencse.text import read_texts
    from opencse.views.schema import header, in_order, texts_hash

    order = {name: specs[name] for name in in_order(specs)}
    workers = max(1, workers or os.cpu_count() or 1)
    rows_per_part = max(UNIT, rows_per_part // UNIT * UNIT)
    digest, rows = texts_hash(read_texts(corpus_path, column))
    if rows == 0:
        raise OpencseError(f"{corpus_path} has no sentence", "Give a corpus with at least one line that is not blank.")
    unit = _Unit(order, seed=seed, workers=min(workers, -(-rows // UNIT)))
    digests = unit.open()
    if unit.workers > 1:
        unit.close()  # each process opens its own
    head = header(order, digests, corpus=digest, rows=rows, seed=seed, part_rows=rows_per_part)
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    parts = [out / f"part-{i:05d}-of-{-(-rows // rows_per_part):05d}.parquet" for i in range(-(-rows // rows_per_part))]
    done = _finished(out, parts, head, resume=resume)
    if len(done) < len(parts):
        texts = read_texts(corpus_path, column)
        _build_missing(texts, unit, parts, done, head, rows=rows, rows_per_part=rows_per_part, progress=progress)
    return out


class _Unit:
    """Builds all columns for a unit of rows; sent to each worker process, where it opens its constructors once."""

    def __init__(self, specs: Mapping[str, ConstructorSpec], *, seed: int, workers: int) -> None:
        self.specs, self.seed, self.workers = dict(specs), seed, workers
        self._open: dict[str, Constructor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def open(self) -> dict[str, str]:
        """Open the constructors, and return the hash of each one's weights."""
        if self._open is None:
            self._open = {name: spec.open(seed=self.seed, workers=self.workers) for name, spec in self.specs.items()}
        return {name: constructor.digest for name, constructor in self._open.items()}

    def close(self) -> None:
        """Let go of the models."""
        self._open = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, list[View]]:
        self.open()
        assert self._open is not None
        views: dict[str, list[View]] = {}
        for name, constructor in self._open.items():
            views[name] = constructor(rows)
            rows = [
                Row(id=row.id, text=row.text, views={**row.views, name: view.text})
                for row, view in zip(rows, views[name], strict=True)
            ]
        return views


def _finished(out: Path, parts: Sequence[Path], head: Mapping[str, Any], *, resume: bool) -> set[Path]:
    """Return the parts that need not be built, and clear away what a killed build left behind."""
    from opencse.views.schema import read_header

    there = sorted(out.glob("part-*-of-*.parquet"))
    for leftover in out.glob(".part-*.tmp"):
        leftover.unlink(missing_ok=True)
    if not resume:
        for part in there:
            part.unlink()
        return set()
    for part in there:
        found = read_header(part)
        if found != head or part not in parts:
            differing = [key for key in head if found.get(key) != head[key]] or ["number of parts"]
            raise OpencseError(
                f"{out} holds views that were built otherwise ({', '.join(differing)} differ)",
                "Build into another folder, or without --resume to replace them.",
            )
    return set(there)


def _build_missing(
    texts: Iterator[str],
    unit: _Unit,
    parts: Sequence[Path],
    done: set[Path],
    head: Mapping[str, Any],
    *,
    rows: int,
    rows_per_part: int,
    progress: bool,
) -> None:
    from tqdm import tqdm

    jobs = _jobs(texts, parts, done, rows_per_part)
    finished = sum(min(rows_per_part, rows - i * rows_per_part) for i, part in enumerate(parts) if part in done)
    pending: list[tuple[list[Row], dict[str, list[View]]]] = []
    bar = tqdm(total=rows, initial=finished, unit="sentence", desc="build", disable=None if progress else True)
    with bar:
        for part, last, unit_rows, views in _mapped(unit, jobs):
            pending.append((unit_rows, views))
            bar.update(len(unit_rows))
            if last:
                _write(part, pending, unit.specs, head)
                pending = []


def _jobs(
    texts: Iterator[str], parts: Sequence[Path], done: set[Path], rows_per_part: int
) -> Iterator[tuple[Path, bool, list[Row]]]:
    """Yield units of rows in order, with the part each belongs to and whether it is the part's last."""
    for i, part in enumerate(parts):
        chunk = list(islice(texts, rows_per_part))
        if part in done:
            continue
        for start in range(0, len(chunk), UNIT):
            first = i * rows_per_part + start
            rows = [Row(id=first + k, text=text) for k, text in enumerate(chunk[start : start + UNIT])]
            yield part, start + UNIT >= len(chunk), rows


def _mapped(
    unit: _Unit, jobs: Iterator[tuple[Path, bool, list[Row]]]
) -> Iterator[tuple[Path, bool, list[Row], dict[str, list[View]]]]:
    """Build units in order, at most a few ahead of what is asked for."""
    if unit.workers == 1:
        with _one_thread():
            for part, last, rows in jobs:
                yield part, last, rows, unit(rows)
        return
    context = multiprocessing.get_context("spawn")  # fork is unsafe once a library has started threads
    with context.Pool(unit.workers, initializer=_start, initargs=(unit,)) as pool:
        waiting: list[tuple[Path, bool, list[Row], Any]] = []
        for part, last, rows in jobs:
            waiting.append((part, last, rows, pool.apply_async(_run, (rows,))))
            if len(waiting) > 2 * unit.workers:
                part, last, rows, result = waiting.pop(0)
                yield part, last, rows, result.get()
        for part, last, rows, result in waiting:
            yield part, last, rows, result.get()


_UNIT: _Unit | None = None  # of a worker process


def _start(unit: _Unit) -> None:
    global _UNIT
    _UNIT = unit  # it opens its constructors with its first rows: an error here would start processes for ever
    _torch_threads(1)


def _run(rows: list[Row]) -> dict[str, list[View]]:
    assert _UNIT is not None
    return _UNIT(rows)


def _torch_threads(count: int) -> int:
    """Set the number of threads of one operation, and return what it was."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    return before


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread for a while, as the worker processes do: the same order of sums, so the same bytes."""
    before = _torch_threads(1)
    try:
        yield
    finally:
        _torch_threads(before)


def _write(
    part: Path,
    units: Sequence[tuple[list[Row], dict[str, list[View]]]],
    specs: Mapping[str, ConstructorSpec],
    head: Mapping[str, Any],
) -> None:
    import pyarrow.parquet as pq

    from opencse.files import replaced_file
    from opencse.views.schema import schema, table

    rows = [row for unit_rows, _ in units for row in unit_rows]
    views = {name: [view for _, made in units for view in made[name]] for name in specs}
    with replaced_file(part) as temporary:
        pq.write_table(table(rows, views, specs, schema(specs, head)), temporary, compression="zstd")
