"""The builder: runs constructors over a corpus and writes Parquet files that an interruption cannot damage."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked, make_folder, replaced_file
from opencse.foundation.numbers import check_seed
from opencse.foundation.progress import Phase, timed
from opencse.foundation.reading import json_object
from opencse.foundation.tables import parquet_metadata, parquet_schema
from opencse.foundation.workers import Engine, Local
from opencse.text.corpus import Corpus
from opencse.text.views.constructor import (
    UNIT,
    BuiltView,
    Constructor,
    ConstructorSpec,
    CorpusAccess,
    SentenceStore,
    SourceRow,
    open_sentence_store,
    texts_hash,
)
from opencse.version import __version__

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone


PART_ROWS = 16 * UNIT
"""Rows per file, rounded down to whole units, and so the maximum that each worker loses when it is killed."""


def build_views(
    corpus_path: str | Path,
    specs: Mapping[str, ConstructorSpec],
    out_dir: str | Path,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    resume: bool = True,
    models: Sequence[Backbone] = (),
) -> Path:
    """Build columns of related sentences for a corpus.

    Writes `part-00000-of-00012.parquet` and so on, each whole or not at all, with the columns `id` and `text`, and for
    each built column `NAME` (null if the constructor found no related sentence), `NAME.rule` and `NAME.SCORE`. The
    schema's metadata holds the header: hash of the texts, version, options, hashes of weights. The bytes depend on
    the header alone, not on the engine, the number of workers or interruptions.

    Args:
        corpus_path: Sentences in the column `text`, in any format that `opencse.text.corpus` reads; blank ones are
            skipped.
        specs: Specifications by name, as in a recipe's `[build]`.
        out_dir: Folder for the files.
        seed: The only source of randomness.
        engine: Runs the work; by default one process per core.
        resume: Keep the files of an interrupted build with the same header; if false, start afresh.
        models: Models to mine with that are open already.

    Returns:
        `out_dir`.

    Raises:
        OpencseError: The corpus cannot be read, a constructor cannot be opened, or the folder holds other views.

    Example:
        from opencse.text.views.registry import Negation, build_views

        build_views("corpus.txt", {"negation": Negation(remove=False)}, "views/")
    """
    out_dir = Path(out_dir)
    with locked(out_dir):
        check_seed(seed)
        ordered = {name: specs[name] for name in build_order(specs)}
        specs = _with_precision(ordered, begun_columns(out_dir) if resume else {})
        digest, rows = texts_hash(Corpus(corpus_path).texts())
        if rows == 0:
            raise OpencseError(
                f"{corpus_path} has no sentence", "Give a corpus with at least one line that is not blank."
            )
        sentences = open_sentence_store(Corpus(corpus_path).texts(), digest)
        builder = _UnitBuilder(specs, sentences, seed)
        engine = engine or Local()
        if isinstance(engine, Local):  # no more processes than units
            engine = Local(processes=min(-(-rows // builder.size), engine.workers))
        if any(spec.needs_corpus for spec in specs.values()):
            access = CorpusAccess(sentences, engine, {model.name: model for model in models})
            with timed("mining"):
                builder.prepared = {name: spec.prepare(access) for name, spec in specs.items()}
        builder.open()
        part_rows = max(1, PART_ROWS // builder.size) * builder.size
        source = {"texts_sha256": digest, "rows": rows, "seed": seed, "rows_per_part": part_rows}
        files = ViewFiles(out_dir, specs, builder.digests, resume=resume, **source)
        if files.missing:
            _build_missing(files, builder, engine)
    return out_dir


def _with_precision(specs: Mapping[str, ConstructorSpec], begun: Mapping[str, Any]) -> dict[str, ConstructorSpec]:
    """Return the specifications with the faster precision of this machine for "auto", so that all workers use the same.

    Columns of a build that is resumed keep the precision in their options, `begun`.
    """
    from opencse.encoder.backbone import Backbone
    from opencse.encoder.device import choose_device, resolve_precision

    out = dict(specs)
    for name, spec in specs.items():
        if getattr(spec, "precision", None) != "auto":
            continue
        before, model = begun.get(name, {}), spec.model  # type: ignore[attr-defined]
        precision = before.get("precision") if before.get("kind") == spec.kind else None
        if precision not in ("bf16", "fp32"):
            precision = resolve_precision("auto", Backbone(model).config, choose_device())
        out[name] = replace(spec, precision=precision)  # type: ignore[call-arg]
    return out


def _build_missing(files: ViewFiles, builder: _UnitBuilder, engine: Engine) -> None:
    """Build and write the files that are missing, and show the progress."""
    if engine.workers > 1:
        builder.close()  # each process opens its own
    done = files.rows - sum(len(files.rows_of(part)) for part in files.missing)
    size = builder.size
    built = [] if engine.remote else builder.count_rows()
    count = None if engine.remote else lambda: done + round(sum(built))
    phase = Phase("building", total=files.rows, unit="sentences", initial=done, count=count)
    with timed("parsing and rewriting"), phase:
        if engine.remote:
            files.paths = [path.absolute() for path in files.paths]
            for _, rows in engine.map(_PartBuilder(builder, files), files.missing):
                phase.update(rows)
            return
        units = [unit for part in files.missing for unit in files.units_of(part, size)]
        pieces: list[BuiltColumns] = []
        for unit, columns in engine.map(builder, units):
            pieces.append(columns)
            part = unit * size // files.rows_per_part
            if unit + 1 == files.units_of(part, size).stop:
                files.write(part, builder.texts(files.rows_of(part)), _joined(pieces))
                pieces = []


def _joined(pieces: Sequence[BuiltColumns]) -> BuiltColumns:
    """Return the columns of consecutive units as one."""
    return {name: [view for columns in pieces for view in columns[name]] for name in pieces[0]}


class _UnitBuilder:
    """The task of a worker: build all columns of a unit of rows, by constructors that each process opens itself.

    Attributes:
        size: Number of rows that are built together.
        prepared: What the specifications prepared, by name.
    """

    def __init__(self, specs: Mapping[str, ConstructorSpec], sentences: SentenceStore, seed: int) -> None:
        self.specs, self.size = dict(specs), max((spec.unit for spec in specs.values()), default=UNIT)
        self.prepared: dict[str, Any] = {}
        self._sentences, self._seed = sentences, seed
        self._constructors: dict[str, Constructor] = {}
        self._built: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_constructors": {}}

    def open(self) -> None:
        """Open the constructors."""
        if not self._constructors:
            self._constructors = {
                name: spec.open(seed=self._seed, prepared=self.prepared.get(name)) for name, spec in self.specs.items()
            }

    def close(self) -> None:
        """Release the models."""
        self._constructors = {}

    @property
    def digests(self) -> dict[str, str]:
        """Hash of the weights of each constructor."""
        return {name: constructor.digest for name, constructor in self._constructors.items()}

    def count_rows(self) -> Any:
        """Return the number of rows built of each unit, counted from now on in memory that local workers share.

        A row of which half of the columns are built counts half. No worker waits for another, as each unit has a place
        of its own.
        """
        units = -(-len(self._sentences) // self.size)
        self._built = multiprocessing.get_context("spawn").RawArray("d", units)
        return self._built

    def texts(self, rows: range) -> list[str]:
        """Return the sentences with these numbers."""
        return self._sentences.range(rows.start, rows.stop)

    def __call__(self, unit: int) -> BuiltColumns:
        """Build the columns of a unit."""
        built: BuiltColumns = {}
        numbers = range(unit * self.size, (unit + 1) * self.size)
        rows = [SourceRow(id=i, text=text) for i, text in zip(numbers, self.texts(numbers), strict=False)]
        for name, constructor in self._constructors.items():
            spec = self.specs[name]
            columns = spec.columns(name)
            views: list[Any] = []
            for start in range(0, len(rows), spec.unit):
                chunk = rows[start : start + spec.unit]
                views += _views(constructor, chunk, spec)
                if self._built is not None:
                    self._built[unit] += len(chunk) / len(self._constructors)
            for k, column in enumerate(columns):
                built[column] = views if columns == (name,) else [row_views[k] for row_views in views]
            rows = [
                replace(row, views={**row.views, **{column: built[column][i].text for column in columns}})
                for i, row in enumerate(rows)
            ]
        return built


def _views(constructor: Constructor, rows: Sequence[SourceRow], spec: ConstructorSpec) -> list[Any]:
    """Return the views of some rows, built from the column `spec.of`; rows where it is null get none."""
    if spec.of == "text":
        return constructor(rows)
    valid = [row for row in rows if row.views[spec.of] is not None]
    built = constructor([replace(row, text=str(row.views[spec.of])) for row in valid])
    views = dict(zip((row.id for row in valid), built, strict=True))
    missing = BuiltView(text=None, rule=f"no {spec.of}", scores=dict.fromkeys(spec.scores))
    return [views.get(row.id, missing) for row in rows]


class _PartBuilder:
    """The task of a worker on any machine: build and write one file."""

    def __init__(self, builder: _UnitBuilder, files: ViewFiles) -> None:
        self._builder, self._files = builder, files

    def open(self) -> None:
        self._builder.open()

    def __call__(self, part: int) -> int:
        builder, files = self._builder, self._files
        columns = _joined([builder(unit) for unit in files.units_of(part, builder.size)])
        files.write(part, builder.texts(files.rows_of(part)), columns)
        return len(files.rows_of(part))


FORMAT = 1
HEADER = b"opencse.text.views.registry"
RESERVED = ("id", "text")
BuiltColumns = dict[str, list[BuiltView]]
"""The views of some rows, by column."""
_TYPES = {"float": pa.float32(), "int": pa.int32(), "string": pa.string()}


def build_order(specs: Mapping[str, ConstructorSpec]) -> list[str]:
    """Return the names of the specifications in build order: each comes after the columns that it needs.

    Raises:
        OpencseError: A name is reserved or has a dot, a needed column is missing, or two columns need each other.
    """
    for name in specs:
        if name in RESERVED or not name or "." in name:
            remedy = "Choose a name without a dot, other than id and text."
            raise OpencseError(f"build.{name}: not a valid name of a column", remedy)
        if specs[name].of != "text" and specs[name].needs_corpus:
            raise OpencseError(f"build.{name}: of: this kind searches the corpus itself", "Remove `of`.")
    column_makers(specs)
    order: list[str] = []
    while len(order) < len(specs):
        built = {column for name in order for column in specs[name].columns(name)}
        ready = [name for name in specs if name not in order and built.issuperset(specs[name].sources)]
        if not ready:
            name = next(name for name in specs if name not in order)
            lacking = [need for need in specs[name].sources if need not in built]
            raise OpencseError(
                f"build.{name}: needs the column {lacking[0]!r}, which is not built before it",
                f"Add [build.{lacking[0]}], or remove the option that names the column.",
            )
        order += ready
    return order


def column_makers(specs: Mapping[str, ConstructorSpec]) -> dict[str, str]:
    """Return the name of the specification that builds each column, by column.

    Raises:
        OpencseError: Two specifications build the same column.
    """
    out: dict[str, str] = {}
    for name, spec in specs.items():
        for column in spec.columns(name):
            if column in out:
                raise OpencseError(f"build.{name} and build.{out[column]} both build {column!r}", "Rename one of them.")
            out[column] = name
    return out


def _parameters(spec: ConstructorSpec) -> dict[str, Any]:
    """Return the kind and the options, including those of a nested specification."""
    values = ((field.name, getattr(spec, field.name)) for field in dataclasses.fields(spec))
    return {"kind": spec.kind, **{k: _parameters(v) if isinstance(v, ConstructorSpec) else v for k, v in values}}


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the header of a Parquet file that `build_views` wrote.

    Raises:
        OpencseError: The file was not written by `build_views`.
    """
    try:
        return json_object(parquet_metadata(path)[HEADER].decode(), str(path), "")
    except (KeyError, ValueError, OpencseError) as error:
        raise OpencseError(
            f"{path} is not a complete file of built views", "Build it again, with --overwrite."
        ) from error


def begun_columns(folder: Path) -> dict[str, Any]:
    """Return the options of each column in a folder of views, complete or not; empty if there are no files."""
    parts = sorted(folder.glob("part-*-of-*.parquet"))
    return dict(read_header(parts[0])["columns"]) if parts else {}


def built_columns(path: str | Path) -> list[str]:
    """Return the names of the built columns in a Parquet file that `build_views` wrote."""
    return [name.removesuffix(".rule") for name in parquet_schema(path).names if name.endswith(".rule")]


class ViewFiles:
    """The files of a build: those that are finished, and those that are missing.

    Args:
        folder: Folder of the files; it is created, and leftovers of a killed build are removed.
        specs: The specifications, in build order.
        digests: Hash of the weights of each.
        resume: Keep finished files; if false, they are removed.
        **source: What else determines the output, for the header of every file: `texts_sha256`, `rows`, `seed` and
            `rows_per_part`.

    Raises:
        OpencseError: There are finished files with another header.
    """

    def __init__(
        self,
        folder: Path,
        specs: Mapping[str, ConstructorSpec],
        digests: Mapping[str, str],
        *,
        resume: bool,
        **source: Any,
    ) -> None:
        columns = {name: {**_parameters(spec), "weights_sha256": digests[name]} for name, spec in specs.items()}
        header = {"format": FORMAT, "tool": f"opencse {__version__}", **source, "columns": columns}
        self.folder, self.specs, self.header = folder, specs, json.loads(json.dumps(header))
        self.rows, self.rows_per_part = int(source["rows"]), int(source["rows_per_part"])
        count = -(-self.rows // self.rows_per_part)
        self.paths = [folder / f"part-{i:05d}-of-{count:05d}.parquet" for i in range(count)]
        make_folder(folder)
        finished = self._finished(resume=resume)
        self.missing = [i for i, path in enumerate(self.paths) if path not in finished]

    def _finished(self, *, resume: bool) -> set[Path]:
        present = sorted(self.folder.glob("part-*-of-*.parquet"))
        for leftover in self.folder.glob(".part-*.tmp"):
            leftover.unlink(missing_ok=True)
        if not resume:
            for path in present:
                path.unlink()
            return set()
        for path in present:
            header = read_header(path)
            if header != self.header or path not in self.paths:
                differing = [key for key in self.header if header.get(key) != self.header[key]] or ["number of parts"]
                raise OpencseError(
                    f"{self.folder} holds views that were built with other settings ({', '.join(differing)} differ)",
                    "Build into another folder, or add --overwrite to replace them.",
                )
        return set(present)

    def rows_of(self, part: int) -> range:
        """Return the numbers of the rows of one file."""
        return range(part * self.rows_per_part, min((part + 1) * self.rows_per_part, self.rows))

    def units_of(self, part: int, size: int) -> range:
        """Return the numbers of the units of `size` rows that one file consists of."""
        return range(part * self.rows_per_part // size, -(-self.rows_of(part).stop // size))

    def write(self, part: int, texts: Sequence[str], built: BuiltColumns) -> None:
        """Write one file, whole or not at all: `id`, `text`, and the text, rule and scores of each built column."""
        import pyarrow.parquet as pq

        columns: dict[pa.Field, Sequence[Any]] = {
            pa.field("id", pa.int64(), nullable=False): self.rows_of(part),
            pa.field("text", pa.string(), nullable=False): texts,
        }
        for name, maker in column_makers(self.specs).items():
            views = built[name]
            columns[pa.field(name, pa.string())] = [view.text for view in views]
            columns[pa.field(f"{name}.rule", pa.string(), nullable=False)] = [view.rule for view in views]
            for score, kind in self.specs[maker].scores.items():
                columns[pa.field(f"{name}.{score}", _TYPES[kind])] = [view.scores.get(score) for view in views]
        schema = pa.schema([*columns], metadata={HEADER: json.dumps(self.header).encode()})
        with replaced_file(self.paths[part]) as temporary:
            table = pa.table({field.name: values for field, values in columns.items()}, schema=schema)
            pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
