"""The builder: runs constructors over a corpus and writes Parquet files that an interruption cannot damage."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import make_folder
from opencse.foundation.lock import locked
from opencse.foundation.numbers import check_seed
from opencse.foundation.progress import Phase, divide, timed
from opencse.foundation.workers import Engine, Local
from opencse.text.views.auto_precision import begun_columns, settle_view_precision
from opencse.text.views.built_rows import BuiltRows
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

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone

REWRITING, MINING = "parsing and rewriting", "mining"
"""The parts of a build's time, for `opencse.foundation.progress.Timings`."""
PART_ROWS = 16 * UNIT
"""Default number of rows per file, and so the maximum that each worker loses when it is killed."""

BuiltColumns = dict[str, list[BuiltView]]


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
    with locked(Path(out_dir)):
        specs, out_dir = _checked(specs, Path(out_dir), seed=seed, resume=resume), Path(out_dir)
        corpus = _Corpus(corpus_path, column)
        size = max((spec.unit for spec in specs.values()), default=UNIT)
        if engine is None or isinstance(engine, Local):  # no more processes than units
            engine = Local(processes=min(-(-corpus.rows // size), (engine or Local(processes=workers)).workers))
        openables: dict[str, Openable] = dict(specs)
        if any(spec.needs_corpus for spec in specs.values()):
            opened = {model.name: model for model in models}
            access = CorpusAccess(corpus.sentences, engine, progress, notify, opened)
            with timed(MINING):
                openables = {name: spec.prepare(access) for name, spec in specs.items()}
        unit = _UnitBuilder(specs, openables, seed=seed, workers=engine.workers)
        parts = _Parts(out_dir, corpus.header(unit, max(1, rows_per_part // size) * size), resume=resume)
        _build_missing(parts, unit, corpus, engine, progress=progress)
    return out_dir


def _checked(
    specs: Mapping[str, ConstructorSpec], folder: Path, *, seed: int, resume: bool
) -> dict[str, ConstructorSpec]:
    """Return the specifications in the order in which they are built, with the precision of this build."""
    from opencse.text.views.storage import build_order

    check_seed(seed)
    ordered = {name: specs[name] for name in build_order(specs)}
    return settle_view_precision(ordered, begun_columns(folder) if resume else {})


class _Corpus:
    """The corpus of a build: its texts, their number and their hash.

    Args:
        path: Sentences in any format that `opencse.text.corpus` reads.
        column: Column that holds the sentence.

    Raises:
        OpencseError: The corpus cannot be read, or has no sentence.
    """

    def __init__(self, path: str | Path, column: str) -> None:
        from opencse.text.views.storage import texts_hash

        self._path, self._column = path, column
        self.digest, self.rows = texts_hash(self.texts())
        if self.rows == 0:
            raise OpencseError(f"{path} has no sentence", "Give a corpus with at least one line that is not blank.")

    def texts(self) -> Iterator[str]:
        """Return the texts, in order."""
        from opencse.text.corpus import read_texts

        return read_texts(self._path, self._column)

    @cached_property
    def sentences(self) -> SentenceStore:
        """The texts by number, from the cache on disk."""
        return open_sentence_store(self.texts(), self.digest)

    def header(self, unit: _UnitBuilder, part_rows: int) -> dict[str, Any]:
        """Return the header of files with `part_rows` rows."""
        from opencse.text.views.storage import build_header

        digests = unit.open()
        return build_header(
            unit.specs, digests, corpus=self.digest, rows=self.rows, seed=unit.seed, part_rows=part_rows
        )


def _build_missing(parts: _Parts, unit: _UnitBuilder, corpus: _Corpus, engine: Engine, *, progress: bool) -> None:
    """Build and write the files that are missing, and show the progress."""
    if not parts.missing:
        return
    if engine.workers > 1:
        unit.close()  # each process opens its own
    seconds: dict[str, float] = defaultdict(float)
    finished, built = corpus.rows - parts.missing_rows, BuiltRows(corpus.rows, unit.size)
    with timed(REWRITING), Phase("building", total=corpus.rows, unit="sentences", initial=finished, show=progress) as p:
        if engine.remote:
            for count in _write_remotely(engine, unit, corpus.sentences, parts):
                p.update(count)
        else:
            p.follow(lambda: finished + built.count)
            _write_locally(engine, _UnitTask(unit, built), corpus.texts(), parts, seconds)
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
    found = constructor([SourceRow(id=row.id, text=str(row.views[spec.of]), views=row.views) for row in valid])
    views = dict(zip((row.id for row in valid), found, strict=True))
    missing = BuiltView(text=None, rule=f"no {spec.of}", scores=dict.fromkeys(spec.scores))
    return [views.get(row.id, missing) for row in rows]


class _Parts:
    """The files of a build: those that are finished, and those that are missing.

    Args:
        folder: Folder of the files; it is created, and leftovers of a killed build are removed.
        header: Header of every file.
        resume: Keep finished files; if false, they are removed.

    Raises:
        OpencseError: There are finished files with another header.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], *, resume: bool) -> None:
        self.folder, self.header = folder, header
        self.rows, self.rows_per_part = int(header["rows"]), int(header["rows_per_part"])
        count = -(-self.rows // self.rows_per_part)
        self.paths = [folder / f"part-{i:05d}-of-{count:05d}.parquet" for i in range(count)]
        make_folder(folder)
        finished = self._finished(resume=resume)
        self.missing = [i for i, path in enumerate(self.paths) if path not in finished]

    def _finished(self, *, resume: bool) -> set[Path]:
        from opencse.text.views.storage import read_header

        present = sorted(self.folder.glob("part-*-of-*.parquet"))
        for leftover in self.folder.glob(".part-*.tmp"):
            leftover.unlink(missing_ok=True)
        if not resume:
            for path in present:
                path.unlink()
            return set()
        for path in present:
            found = read_header(path)
            if found != self.header or path not in self.paths:
                differing = [key for key in self.header if found.get(key) != self.header[key]] or ["number of parts"]
                raise OpencseError(
                    f"{self.folder} holds views that were built with other settings ({', '.join(differing)} differ)",
                    "Build into another folder, or add --overwrite to replace them.",
                )
        return set(present)

    def rows_of(self, part: int) -> range:
        """Return the numbers of the rows of one file."""
        return range(part * self.rows_per_part, min((part + 1) * self.rows_per_part, self.rows))

    @property
    def missing_rows(self) -> int:
        """Number of rows that are still to be built."""
        return sum(len(self.rows_of(part)) for part in self.missing)

    def write(
        self, part: int, units: Sequence[tuple[list[SourceRow], BuiltColumns]], specs: Mapping[str, ConstructorSpec]
    ) -> None:
        """Write one file, whole or not at all."""
        import pyarrow.parquet as pq

        from opencse.foundation.files import replaced_file
        from opencse.text.views.storage import column_makers, views_schema, views_table

        rows = [row for unit_rows, _ in units for row in unit_rows]
        views = {name: [view for _, built in units for view in built[name]] for name in column_makers(specs)}
        with replaced_file(self.paths[part]) as temporary:
            content = views_table(rows, views, specs, views_schema(specs, self.header))
            pq.write_table(content, temporary, compression="zstd", write_page_checksum=True)


def _units(texts: Sequence[str], first: int, size: int) -> Iterator[list[SourceRow]]:
    """Yield texts as units of rows, numbered from `first`."""
    for start in range(0, len(texts), size):
        yield [SourceRow(id=first + start + k, text=text) for k, text in enumerate(texts[start : start + size])]


_Job = tuple[int, list[SourceRow]]


def _write_locally(
    engine: Engine, task: _UnitTask, texts: Iterator[str], parts: _Parts, seconds: dict[str, float]
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
    """The task of a local worker: build one unit of rows, and count the rows meanwhile."""

    def __init__(self, unit: _UnitBuilder, built: BuiltRows) -> None:
        self.unit, self._built = unit, built

    def open(self) -> None:
        self.unit.open()

    def __call__(self, job: _Job) -> tuple[BuiltColumns, dict[str, float]]:
        self.unit.seconds.clear()
        built = self.unit(job[1], partial(self._built.add, job[1][0].id))
        return built, dict(self.unit.seconds)


def _write_remotely(engine: Engine, unit: _UnitBuilder, sentences: SentenceStore, parts: _Parts) -> Iterator[int]:
    """Build and write whole files on the workers of an engine; yield the number of rows of each file."""
    parts.folder = parts.folder.absolute()
    parts.paths = [path.absolute() for path in parts.paths]
    for _, count in engine.map(_PartTask(unit, sentences, parts), parts.missing):
        yield count


class _PartTask:
    """The task of a worker on any machine: build and write one file, from sentences on disk."""

    def __init__(self, unit: _UnitBuilder, sentences: SentenceStore, parts: _Parts) -> None:
        self._unit, self._sentences, self._parts = unit, sentences, parts

    def open(self) -> None:
        self._unit.open()

    def __call__(self, part: int) -> int:
        rows = self._parts.rows_of(part)
        texts = self._sentences.range(rows.start, rows.stop)
        units = [(unit_rows, self._unit(unit_rows)) for unit_rows in _units(texts, rows.start, self._unit.size)]
        self._parts.write(part, units, self._unit.specs)
        return len(texts)
