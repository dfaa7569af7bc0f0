"""The builder: runs constructors over a corpus and writes Parquet files that an interruption cannot damage."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked
from opencse.foundation.numbers import check_seed
from opencse.foundation.progress import Phase, timed
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
from opencse.text.views.storage import BuiltColumns, ViewFiles, begun_columns, build_order

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
