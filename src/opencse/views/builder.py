"""The builder: constructors over a whole corpus, into a folder of Parquet parts that a kill cannot spoil."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from opencse.engines import Engine, Local
from opencse.errors import OpencseError
from opencse.views.constructor import UNIT, BuiltView, Constructor, ConstructorSpec, ManyConstructor, Opener, SourceRow
from opencse.views.precision import begun_columns, settle_precision
from opencse.views.sentence_store import CorpusAccess, Sentences, open_sentences

PART_ROWS = 16 * UNIT
BuiltColumns = dict[str, list[BuiltView]]


def build(
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
    tell: Callable[[str], None] = lambda _: None,
) -> Path:
    """Build columns of related sentences.

    Writes `part-00000-of-00012.parquet` and so on, each whole or not at all: `id`, `text`, and for each built column
    `NAME` (null where the constructor could not do its job), `NAME.rule` and its scores. The schema's metadata holds
    the header: hash of the texts, version, parameters, hashes of weights. The bytes depend on nothing else, in
    particular not on the engine or the number of workers, nor on how often the build was stopped and resumed.

    Args:
        corpus_path: Sentences, in any format that `opencse.io.corpus` reads; blank ones are left out.
        specs: Constructors by column name.
        out_dir: Where the parts go.
        seed: The only source of chance.
        workers: Processes; None for one per core.
        engine: Where the work is done; by default `Local` with these workers.
        resume: Keep the parts that are there if their header is the same; if not, start afresh.
        progress: Show progress.
        rows_per_part: Rows in a part: what is done again after a kill is at most the parts under way.
        column: Column of the corpus that holds the sentence.
        tell: Takes short notes for the user, such as the memory that mining will need.

    Returns:
        `out_dir`.

    Raises:
        OpencseError: The corpus cannot be read, a constructor cannot be opened, or the folder holds other views.
    """
    from opencse.io.corpus import read_texts
    from opencse.views.storage import header, in_order, texts_hash

    specs = settle_precision(specs, begun_columns(Path(out_dir)) if resume else {})
    if not 0 <= seed < 2**32:
        raise OpencseError(f"seed {seed} is out of range", f"Give a seed from 0 to {2**32 - 1}.")
    order = {name: specs[name] for name in in_order(specs)}
    size = max((spec.unit for spec in order.values()), default=UNIT)
    rows_per_part = max(1, rows_per_part // size) * size
    digest, rows = texts_hash(read_texts(corpus_path, column))
    if rows == 0:
        raise OpencseError(f"{corpus_path} has no sentence", "Give a corpus with at least one line that is not blank.")
    if engine is None or isinstance(engine, Local):  # no more processes than units
        engine = Local(processes=min(-(-rows // size), (engine or Local(processes=workers)).workers))
    sentences = None
    if engine.remote or any(spec.sees_the_corpus for spec in order.values()):
        sentences = open_sentences(read_texts(corpus_path, column), digest)
    openers: dict[str, Opener] = dict(order)
    if sentences is not None:
        whole = CorpusAccess(sentences=sentences, engine=engine, progress=progress, tell=tell)
        openers = {name: spec.prepare(whole) for name, spec in order.items()}
    unit = _Unit(order, openers, seed=seed, workers=engine.workers)
    digests = unit.open()
    if engine.workers > 1:
        unit.close()  # each process opens its own
    head = header(order, digests, corpus=digest, rows=rows, seed=seed, part_rows=rows_per_part)
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    parts = [out / f"part-{i:05d}-of-{-(-rows // rows_per_part):05d}.parquet" for i in range(-(-rows // rows_per_part))]
    done = _finished(out, parts, head, resume=resume)
    if len(done) == len(parts):
        return out
    written: Iterator[int]
    if engine.remote:
        assert sentences is not None
        task = _Part(unit, sentences, parts, head, rows_per_part)
        written = (count for _, count in engine.map(task, [i for i, part in enumerate(parts) if part not in done]))
    else:
        jobs = _jobs(read_texts(corpus_path, column), parts, done, rows_per_part, size)
        written = _written(engine.map(_JobUnit(unit), jobs), order, head)
    _follow(
        written,
        rows,
        sum(min(rows_per_part, rows - i * rows_per_part) for i, p in enumerate(parts) if p in done),
        progress,
    )
    return out


class _Unit:
    """Builds all columns for a unit of rows; sent to each worker process, where it opens its constructors once."""

    def __init__(
        self, specs: Mapping[str, ConstructorSpec], openers: Mapping[str, Opener], *, seed: int, workers: int
    ) -> None:
        self.specs, self.openers, self.seed, self.workers = dict(specs), dict(openers), seed, workers
        self._open: dict[str, Constructor | ManyConstructor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    @property
    def size(self) -> int:
        """Rows that are built together."""
        return max(spec.unit for spec in self.specs.values())

    def open(self) -> dict[str, str]:
        """Open the constructors, and return the hash of each one's weights."""
        if self._open is None:
            self._open = {name: one.open(seed=self.seed, workers=self.workers) for name, one in self.openers.items()}
        return {name: constructor.digest for name, constructor in self._open.items()}

    def close(self) -> None:
        """Let go of the models."""
        self._open = None

    def __call__(self, rows: Sequence[SourceRow]) -> BuiltColumns:
        self.open()
        assert self._open is not None
        views: BuiltColumns = {}
        for name, constructor in self._open.items():
            spec = self.specs[name]
            columns = spec.columns(name)
            made: list[Any] = []
            for start in range(0, len(rows), spec.unit):
                made += _made(constructor, rows[start : start + spec.unit], spec)
            for k, column in enumerate(columns):
                views[column] = made if columns == (name,) else [few[k] for few in made]
            rows = [
                SourceRow(id=row.id, text=row.text, views={**row.views, **{c: views[c][i].text for c in columns}})
                for i, row in enumerate(rows)
            ]
        return views


def _made(constructor: Constructor | ManyConstructor, rows: Sequence[SourceRow], spec: ConstructorSpec) -> list[Any]:
    """What a constructor makes of the column that it takes; nothing where that is null."""
    if spec.of == "text":
        return list(constructor(rows))
    there = [row for row in rows if row.views[spec.of] is not None]
    taken = constructor([SourceRow(id=row.id, text=str(row.views[spec.of]), views=row.views) for row in there])
    views = dict(zip((row.id for row in there), taken, strict=True))
    nothing = BuiltView(text=None, rule=f"no {spec.of}", scores=dict.fromkeys(spec.scores))
    return [views.get(row.id, nothing) for row in rows]


def _finished(out: Path, parts: Sequence[Path], head: Mapping[str, Any], *, resume: bool) -> set[Path]:
    """Return the parts that need not be built, and clear away what a killed build left behind."""
    from opencse.views.storage import read_header

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


def _follow(written: Iterable[int], rows: int, finished: int, progress: bool) -> None:
    from opencse.progress import Phase

    with Phase("building", total=rows, unit="sentences", initial=finished, show=progress) as phase:
        for count in written:
            phase.update(count)


_Job = tuple[Path, bool, list[SourceRow]]


def _jobs(
    texts: Iterator[str], parts: Sequence[Path], done: set[Path], rows_per_part: int, size: int
) -> Iterator[_Job]:
    """Yield units of rows in order, with the part each belongs to and whether it is the part's last."""
    for i, part in enumerate(parts):
        chunk = list(islice(texts, rows_per_part))
        if part in done:
            continue
        for unit in _units(chunk, i * rows_per_part, size):
            yield part, unit[-1].id + 1 == i * rows_per_part + len(chunk), unit


def _units(texts: Sequence[str], first: int, size: int) -> Iterator[list[SourceRow]]:
    """Cut texts into units of rows, numbered from `first`."""
    for start in range(0, len(texts), size):
        yield [SourceRow(id=first + start + k, text=text) for k, text in enumerate(texts[start : start + size])]


class _JobUnit:
    """The rows of a job through a `_Unit`."""

    def __init__(self, unit: _Unit) -> None:
        self.unit = unit

    def open(self) -> None:
        self.unit.open()

    def __call__(self, job: _Job) -> BuiltColumns:
        return self.unit(job[2])


def _written(
    results: Iterable[tuple[_Job, BuiltColumns]], specs: Mapping[str, ConstructorSpec], head: Mapping[str, Any]
) -> Iterator[int]:
    """Write each part when its last unit is there; yield the rows of each unit."""
    pending: list[tuple[list[SourceRow], BuiltColumns]] = []
    for (part, last, rows), views in results:
        pending.append((rows, views))
        if last:
            _write(part, pending, specs, head)
            pending = []
        yield len(rows)


class _Part:
    """Builds and writes a whole part, from sentences on disk: the task of a worker that may be anywhere."""

    def __init__(
        self, unit: _Unit, sentences: Sentences, parts: Sequence[Path], head: Mapping[str, Any], rows_per_part: int
    ) -> None:
        self._unit, self._sentences, self._head = unit, sentences, head
        self._parts, self._rows = [part.absolute() for part in parts], rows_per_part

    def open(self) -> None:
        self._unit.open()

    def __call__(self, part: int) -> int:
        first = part * self._rows
        texts = self._sentences.range(first, first + self._rows)
        done = [(rows, self._unit(rows)) for rows in _units(texts, first, self._unit.size)]
        _write(self._parts[part], done, self._unit.specs, self._head)
        return len(texts)


def _write(
    part: Path,
    units: Sequence[tuple[list[SourceRow], BuiltColumns]],
    specs: Mapping[str, ConstructorSpec],
    head: Mapping[str, Any],
) -> None:
    import pyarrow.parquet as pq

    from opencse.io.files import replaced_file
    from opencse.views.storage import makers, schema, table

    rows = [row for unit_rows, _ in units for row in unit_rows]
    views = {name: [view for _, made in units for view in made[name]] for name in makers(specs)}
    with replaced_file(part) as temporary:
        pq.write_table(
            table(rows, views, specs, schema(specs, head)), temporary, compression="zstd", write_page_checksum=True
        )
