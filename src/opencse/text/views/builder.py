"""The builder: runs constructors over a corpus and writes Parquet files that an interruption cannot damage."""

from __future__ import annotations

import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.lock import locked
from opencse.foundation.numbers import check_seed
from opencse.foundation.progress import Phase, divide, timed
from opencse.foundation.workers import Engine, Local
from opencse.text.corpus import read_texts
from opencse.text.views.constructor import (
    UNIT,
    BuiltView,
    Constructor,
    ConstructorSpec,
    MultiColumnConstructor,
    Openable,
    SourceRow,
)
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore, open_sentence_store
from opencse.text.views.storage import (
    BuiltColumns,
    ViewFiles,
    begun_columns,
    build_header,
    build_order,
    texts_hash,
)

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone

REWRITING, MINING = "parsing and rewriting", "mining"
"""The parts of a build's time, for `opencse.foundation.progress.Timings`."""
PART_ROWS = 16 * UNIT
"""Default number of rows per file, and so the maximum that each worker loses when it is killed."""


def build_views(
    corpus_path: str | Path,
    specs: Mapping[str, ConstructorSpec],
    out_dir: str | Path,
    *,
    seed: int = 0,
    workers: int | None = None,
    engine: Engine | None = None,
    resume: bool = True,
    progress: bool = True,
    rows_per_part: int = PART_ROWS,
    column: str = "text",
    notify: Callable[[str], None] = lambda _: None,
    models: Sequence[Backbone] = (),
) -> Path:
    """Build columns of related sentences for a corpus.

    Writes `part-00000-of-00012.parquet` and so on, each whole or not at all, with the columns `id` and `text`, and for
    each built column `NAME` (null if the constructor found no related sentence), `NAME.rule` and `NAME.SCORE`. The
    schema's metadata holds the header: hash of the texts, version, options, hashes of weights. The bytes depend on
    the header alone, not on the engine, the number of workers or interruptions.

    Args:
        corpus_path: Sentences in any format that `opencse.text.corpus` reads; blank ones are skipped.
        specs: Specifications by name, as in a recipe's `[build]`.
        out_dir: Folder for the files.
        seed: The only source of randomness.
        workers: Number of processes; None for one per core.
        engine: Runs the work; by default `Local` with these workers.
        resume: Keep the files of an interrupted build with the same header; if false, start afresh.
        progress: Show progress.
        rows_per_part: Rows in a file, rounded down to whole units.
        column: Column of the corpus that holds the sentence.
        notify: Receives short notes for the user, such as the memory that mining needs.
        models: Models to mine with that are open already.

    Returns:
        `out_dir`.

    Raises:
        OpencseError: The corpus cannot be read, a constructor cannot be opened, or the folder holds other views.

    Example:
        from opencse.text.views.registry import Negation, build_views

        build_views("corpus.txt", {"negation": Negation(contract=True)}, "views/")
    """
    out_dir = Path(out_dir)
    with locked(out_dir):
        check_seed(seed)
        ordered = {name: specs[name] for name in build_order(specs)}
        specs = _with_precision(ordered, begun_columns(out_dir) if resume else {})
        texts = partial(read_texts, corpus_path, column)
        digest, rows = texts_hash(texts())
        if rows == 0:
            raise OpencseError(
                f"{corpus_path} has no sentence", "Give a corpus with at least one line that is not blank."
            )
        sentences = cache(lambda: open_sentence_store(texts(), digest))
        size = max((spec.unit for spec in specs.values()), default=UNIT)
        if engine is None or isinstance(engine, Local):  # no more processes than units
            engine = Local(processes=min(-(-rows // size), (engine or Local(processes=workers)).workers))
        openables: dict[str, Openable] = dict(specs)
        if any(spec.needs_corpus for spec in specs.values()):
            opened = {model.name: model for model in models}
            access = CorpusAccess(sentences(), engine, progress, notify, opened)
            with timed(MINING):
                openables = {name: spec.prepare(access) for name, spec in specs.items()}
        unit = _UnitBuilder(specs, openables, seed=seed, workers=engine.workers)
        part_rows = max(1, rows_per_part // size) * size
        header = build_header(specs, unit.open(), corpus=digest, rows=rows, seed=seed, part_rows=part_rows)
        files = ViewFiles(out_dir, header, resume=resume)
        if files.missing:
            _build_missing(files, unit, texts, sentences, engine, progress=progress)
    return out_dir


def _with_precision(specs: Mapping[str, ConstructorSpec], begun: Mapping[str, Any]) -> dict[str, ConstructorSpec]:
    """Return the specifications with the faster precision of this machine for "auto", so that all workers use the same.

    Columns of a build that is resumed keep the precision in their options, `begun`.
    """
    from opencse.encoder import backbone_config
    from opencse.encoder.device import choose_device
    from opencse.encoder.precision import choose_precision

    out = dict(specs)
    for name, spec in specs.items():
        if getattr(spec, "precision", None) != "auto":
            continue
        before, model = begun.get(name, {}), spec.model  # type: ignore[attr-defined]
        if before.get("kind") == spec.kind and before.get("precision") in ("bf16", "fp32"):
            precision = before["precision"]
        else:
            precision = choose_precision(
                backbone_config(model), getattr(spec, "device", "") or choose_device()
            ).precision
        out[name] = replace(spec, precision=precision)  # type: ignore[call-arg]
    return out


def _build_missing(
    files: ViewFiles,
    unit: _UnitBuilder,
    texts: Callable[[], Iterator[str]],
    sentences: Callable[[], SentenceStore],
    engine: Engine,
    *,
    progress: bool,
) -> None:
    """Build and write the files that are missing, and show the progress."""
    if engine.workers > 1:
        unit.close()  # each process opens its own
    seconds: dict[str, float] = defaultdict(float)
    finished, task = files.rows - files.missing_rows, _UnitTask(unit, files.rows)
    with timed(REWRITING), Phase("building", total=files.rows, unit="sentences", initial=finished, show=progress) as p:
        if engine.remote:
            files.paths = [path.absolute() for path in files.paths]
            for _, count in engine.map(_PartTask(unit, sentences(), files), files.missing):
                p.update(count)
        else:
            p.follow(lambda: finished + round(sum(task.built)))
            _write_locally(engine, task, texts(), files, seconds)
    divide(REWRITING, seconds)


class _UnitBuilder:
    """Builds all columns for a unit of rows; it is sent to each worker process and opens its constructors there."""

    def __init__(
        self, specs: Mapping[str, ConstructorSpec], openables: Mapping[str, Openable], *, seed: int, workers: int
    ) -> None:
        self.specs, self.openables, self.seed, self.workers = dict(specs), dict(openables), seed, workers
        self.seconds: dict[str, float] = defaultdict(float)  # by part of `opencse.foundation.progress.Timings`
        self._constructors: dict[str, Constructor | MultiColumnConstructor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_constructors": None}

    @property
    def size(self) -> int:
        """Number of rows that are built together."""
        return max(spec.unit for spec in self.specs.values())

    def open(self) -> dict[str, str]:
        """Open the constructors, and return the hash of each one's weights."""
        if self._constructors is None:
            options = {"seed": self.seed, "workers": self.workers}
            self._constructors = {name: one.open(**options) for name, one in self.openables.items()}
        return {name: constructor.digest for name, constructor in self._constructors.items()}

    def close(self) -> None:
        """Release the models."""
        self._constructors = None

    def __call__(self, rows: Sequence[SourceRow], report: Callable[[float], None] = lambda _: None) -> BuiltColumns:
        """Build all columns for some rows; `report` receives the number of rows built since its last call."""
        self.open()
        assert self._constructors is not None
        built: BuiltColumns = {}
        for name, constructor in self._constructors.items():
            spec = self.specs[name]
            columns = spec.columns(name)
            started = time.perf_counter()
            views: list[Any] = []
            for start in range(0, len(rows), spec.unit):
                chunk = rows[start : start + spec.unit]
                views += _build_views(constructor, chunk, spec)
                report(len(chunk) / len(self._constructors))
            self.seconds[MINING if spec.needs_corpus else REWRITING] += time.perf_counter() - started
            for k, column in enumerate(columns):
                built[column] = views if columns == (name,) else [row_views[k] for row_views in views]
            rows = [
                SourceRow(id=row.id, text=row.text, views={**row.views, **{c: built[c][i].text for c in columns}})
                for i, row in enumerate(rows)
            ]
        return built


def _build_views(
    constructor: Constructor | MultiColumnConstructor, rows: Sequence[SourceRow], spec: ConstructorSpec
) -> list[Any]:
    """Return the views of some rows, built from the column `spec.of`; rows where it is null get none."""
    if spec.of == "text":
        return list(constructor(rows))
    valid = [row for row in rows if row.views[spec.of] is not None]
    built = constructor([SourceRow(id=row.id, text=str(row.views[spec.of]), views=row.views) for row in valid])
    views = dict(zip((row.id for row in valid), built, strict=True))
    missing = BuiltView(text=None, rule=f"no {spec.of}", scores=dict.fromkeys(spec.scores))
    return [views.get(row.id, missing) for row in rows]


def _units(texts: Sequence[str], first: int, size: int) -> Iterator[list[SourceRow]]:
    """Yield texts as units of rows, numbered from `first`."""
    for start in range(0, len(texts), size):
        yield [SourceRow(id=first + start + k, text=text) for k, text in enumerate(texts[start : start + size])]


_Job = tuple[int, list[SourceRow]]


def _write_locally(
    engine: Engine, task: _UnitTask, texts: Iterator[str], parts: ViewFiles, seconds: dict[str, float]
) -> None:
    """Build units on this machine and write each file after its last unit.

    The time that the workers spend on rewriting and on mining is added to `seconds`.
    """

    def jobs() -> Iterator[_Job]:
        missing = set(parts.missing)
        for part in range(len(parts.paths)):
            rows = parts.rows_of(part)
            chunk = list(islice(texts, len(rows)))
            if part in missing:
                yield from ((part, unit_rows) for unit_rows in _units(chunk, rows.start, task.unit.size))

    pending: list[tuple[list[SourceRow], BuiltColumns]] = []
    for (part, rows), (built, taken) in engine.map(task, jobs()):
        for name, one in taken.items():
            seconds[name] += one
        pending.append((rows, built))
        if rows[-1].id + 1 == parts.rows_of(part).stop:
            parts.write(part, pending, task.unit.specs)
            pending = []


class _UnitTask:
    """The task of a local worker: build one unit of rows, and count the rows meanwhile.

    Attributes:
        built: Rows built of each unit; a row of which half of the columns are built counts half. Each unit has a place
            of its own in shared memory, so that no worker waits for another; it reaches the workers with the task that
            they are started with.
    """

    def __init__(self, unit: _UnitBuilder, rows: int) -> None:
        self.unit, self.built = unit, multiprocessing.get_context("spawn").RawArray("d", -(-rows // unit.size))

    def open(self) -> None:
        self.unit.open()

    def __call__(self, job: _Job) -> tuple[BuiltColumns, dict[str, float]]:
        place = job[1][0].id // self.unit.size

        def count(rows: float) -> None:
            self.built[place] += rows

        self.unit.seconds.clear()
        built = self.unit(job[1], count)
        return built, dict(self.unit.seconds)


class _PartTask:
    """The task of a worker on any machine: build and write one file, from sentences on disk."""

    def __init__(self, unit: _UnitBuilder, sentences: SentenceStore, parts: ViewFiles) -> None:
        self._unit, self._sentences, self._parts = unit, sentences, parts

    def open(self) -> None:
        self._unit.open()

    def __call__(self, part: int) -> int:
        rows = self._parts.rows_of(part)
        texts = self._sentences.range(rows.start, rows.stop)
        units = [(unit_rows, self._unit(unit_rows)) for unit_rows in _units(texts, rows.start, self._unit.size)]
        self._parts.write(part, units, self._unit.specs)
        return len(texts)
