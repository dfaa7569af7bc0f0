"""The builder: builds views of a corpus into Parquet files that an interruption cannot damage."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked, make_folder, replaced
from opencse.foundation.numbers import check_seed
from opencse.foundation.progress import Phase, timed
from opencse.foundation.reading import json_object
from opencse.foundation.tables import VIEWS_HEADER, parquet_metadata, parquet_schema
from opencse.foundation.workers import Engine, Local
from opencse.text.corpus import Corpus
from opencse.text.views.registry import (
    UNIT,
    OpenedView,
    SampledSentences,
    SentenceStore,
    SourceRow,
    View,
    ViewText,
    open_sentence_store,
    texts_hash,
)
from opencse.version import __version__

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone


PART_ROWS = 16 * UNIT
"""Maximum number of rows per file."""
# Sentences that each process may hold in memory: with 100 characters each about 50 MB.
_LARGEST_SAMPLE = 300_000
# Corpora of fewer files than this get smaller files, so that workers share the work.
_PARTS = 64


def build_views(
    corpus: Corpus,
    specs: Mapping[str, View],
    out_dir: str | Path,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    resume: bool = True,
    models: Sequence[Backbone] = (),
    sampled: bool = False,
) -> Corpus:
    """Build columns of related sentences for a corpus.

    Writes `part-00000-of-00012.parquet` and so on, each completely or not at all, with the columns `id`
    and `text`, and for each built column `NAME` (null if the view found no related
    sentence), `NAME.rule` and `NAME.SCORE`. The schema's metadata holds the header: hash of the
    texts, version, options, hashes of weights. The bytes depend on the header alone, not on the
    engine, the number of workers or interruptions.

    Args:
        corpus: Sentences in the column `text`; blank ones are skipped.
        specs: views by name, as in a recipe's `[build]`.
        out_dir: Folder for the files.
        seed: The only source of randomness.
        engine: Runs the work; by default one process per core.
        resume: Keep the files of an interrupted build with the same header; if false, start afresh.
        models: Models to mine with that are open already.
        sampled: The corpus is a table of a sample, which each process may hold in memory.

    Returns:
        The folder, opened, under the name of the corpus.

    Raises:
        OpencseError: The corpus cannot be read, a view cannot be opened, or the folder holds
            other views.

    Example:
        from opencse.text.views.builder import build_views
        from opencse.text.views.registry import Negation

        build_views(Corpus("corpus.txt"), {"negation": Negation(remove=False)}, "views/")
    """
    out_dir = Path(out_dir)
    with locked(out_dir):
        check_seed(seed)
        ordered = {name: specs[name] for name in build_order(specs)}
        specs = _with_precision(ordered)
        # By their texts, not by the file: the same sentences in another format need no new build.
        digest, rows = texts_hash(corpus.texts())
        if rows == 0:
            raise OpencseError(
                f"{corpus.path} has no sentence",
                "Give a corpus with at least one line that is not blank.",
            )
        sentences: SentenceStore
        if sampled and rows <= _LARGEST_SAMPLE:
            sentences = SampledSentences(corpus.path.absolute(), digest)
        else:
            sentences = open_sentence_store(corpus.texts(), digest)
        part_rows = _rows_per_file(specs, rows)
        engine = _engine_for(engine, files=-(-rows // part_rows))
        builder = _PartBuilder(specs, sentences, seed, part_rows, out_dir.absolute())
        # Mining embeds the corpus once, in this process, before workers start.
        if any(spec.needs_corpus for spec in specs.values()):
            opened = {model.name: model for model in models}
            with timed("mining"):
                for name, spec in specs.items():
                    builder.prepared[name] = spec.prepare(sentences, engine, opened)

        columns = {}
        for name, weights in builder.open():
            columns[name] = _parameters(specs[name]) | {"weights_sha256": weights}
        header = {
            "texts_sha256": digest,
            "rows": rows,
            "seed": seed,
            "rows_per_part": part_rows,
            "columns": columns,
        }
        # The hashes of the weights are known now, so parts of another model are found here.
        missing = builder.missing(header, resume=resume)
        _build_files(builder, engine, missing, rows)
    return Corpus(out_dir, corpus.name)


def _rows_per_file(specs: Mapping[str, View], rows: int) -> int:
    """Return the number of rows per file, a multiple of the rows that are built together."""
    # A file holds complete units, so that its bytes do not depend on which worker builds it.
    unit = max((spec.unit for spec in specs.values()), default=UNIT)
    wanted = min(PART_ROWS, rows // _PARTS)
    return unit * max(1, wanted // unit)


def _engine_for(engine: Engine | None, files: int) -> Engine:
    """Return the engine; on this machine it starts no more processes than there are files."""
    if engine is None:
        engine = Local()
    if isinstance(engine, Local):
        return Local(processes=min(files, engine.workers))
    return engine


def _build_files(builder: _PartBuilder, engine: Engine, missing: Sequence[int], rows: int) -> None:
    """Build the missing files of a corpus of `rows` rows, and show the progress."""
    done = rows - sum(len(builder.rows_of(part)) for part in missing)
    if engine.workers > 1:
        # Each process opens its own.
        builder.opened = {}
    count: Callable[[], int] | None = None
    if not engine.remote:
        # Local workers share memory, in which each file has a place, so no worker waits for
        # another.
        context = multiprocessing.get_context("spawn")
        built = context.RawArray("d", len(builder.paths))
        builder.built = built

        def rows_built() -> int:
            return done + round(sum(built))

        count = rows_built

    phase = Phase(
        "building", total=rows, unit="sentences", initial=done, show=bool(missing), count=count
    )
    with timed("parsing and rewriting"), phase:
        for _, written in engine.map(builder, missing):
            phase.update(written)


def _with_precision(specs: Mapping[str, View]) -> dict[str, View]:
    """Return the views with this machine's precision for "auto".

    It is fixed here, so that all workers use the same.
    """
    from opencse.encoder.backbone import Backbone
    from opencse.encoder.device import choose_device, resolve_precision

    out = dict(specs)
    for name, spec in specs.items():
        if getattr(spec, "precision", None) == "auto":
            config = Backbone(spec.model).config  # type: ignore[attr-defined]
            precision = resolve_precision("auto", config, choose_device())
            out[name] = replace(spec, precision=precision)  # type: ignore[call-arg]
    return out


class _PartBuilder:
    """The task of a worker: build and write one file, by views that each process opens itself.

    Attributes:
        paths: The files.
        prepared: What the views prepared, by name.
        built: Number of rows built of each file, if they are counted; a row with half of its
            columns counts half.
    """

    built: Any = None

    def __init__(
        self,
        specs: Mapping[str, View],
        sentences: SentenceStore,
        seed: int,
        part_rows: int,
        folder: Path,
    ) -> None:
        self.specs = dict(specs)
        self.sentences = sentences
        self.prepared: dict[str, Any] = {}
        self._seed = seed
        self._part_rows = part_rows
        self._folder = folder
        self._header: dict[str, Any] = {}
        self.opened: dict[str, OpenedView] = {}
        count = -(-len(sentences) // part_rows)
        self.paths = [folder / f"part-{i:05d}-of-{count:05d}.parquet" for i in range(count)]

    @property
    def uses_gpu(self) -> bool:
        """Whether a view runs a model."""
        return any(spec.uses_gpu for spec in self.specs.values())

    def __getstate__(self) -> dict[str, Any]:
        # Constructors hold models, which each process opens itself.
        return {**self.__dict__, "opened": {}}

    def open(self) -> list[tuple[str, str]]:
        """Open the views, and return their names with the hashes of their weights."""
        if not self.opened:
            for name, spec in self.specs.items():
                prepared = self.prepared.get(name)
                self.opened[name] = spec.open(seed=self._seed, prepared=prepared)
        return [(name, opened.digest) for name, opened in self.opened.items()]

    def rows_of(self, part: int) -> range:
        """Return the numbers of the rows of one file."""
        start = part * self._part_rows
        stop = min(start + self._part_rows, len(self.sentences))
        return range(start, stop)

    def missing(self, header: Mapping[str, Any], *, resume: bool) -> list[int]:
        """Return the numbers of the files to build, and remove leftovers of a killed build.

        Args:
            header: What determines the content.
            resume: Keep finished files; if false, they are removed.

        Raises:
            OpencseError: There are finished files with another header.
        """
        full_header = {"format": 1, "tool": f"opencse {__version__}", **header}
        # As it is read back: JSON turns tuples into lists.
        self._header = json.loads(json.dumps(full_header))
        make_folder(self._folder)
        # Of a build that was killed while it wrote.
        for leftover in self._folder.glob(".part-*.tmp"):
            leftover.unlink(missing_ok=True)
        for path in sorted(self._folder.glob("part-*-of-*.parquet")):
            if not resume:
                _refuse_foreign_part(path)
                path.unlink()
                continue
            written = read_header(path)
            if written != self._header:
                differing = [key for key in self._header if written.get(key) != self._header[key]]
                raise OpencseError(
                    f"{self._folder} holds views that were built with other settings "
                    f"({', '.join(differing)} differ)",
                    "Build into another folder, or add --overwrite to replace them.",
                )
        return [i for i, path in enumerate(self.paths) if not path.is_file()]

    def __call__(self, part: int) -> int:
        """Build and write one file, and return the number of its rows."""
        import pyarrow.parquet as pq

        numbers = self.rows_of(part)
        texts = self.sentences.range(numbers.start, numbers.stop)
        rows = [SourceRow(id=i, text=text) for i, text in zip(numbers, texts, strict=True)]
        cells: dict[pa.Field, Sequence[Any]] = {
            pa.field("id", pa.int64(), nullable=False): numbers,
            pa.field("text", pa.string(), nullable=False): texts,
        }
        for name, opened in self.opened.items():
            spec = self.specs[name]
            views: list[list[ViewText]] = []
            for start in range(0, len(rows), spec.unit):
                chunk = rows[start : start + spec.unit]
                views += _views(opened, chunk, spec)
                if self.built is not None:
                    self.built[part] += len(chunk) / len(self.opened)
            for k, column in enumerate(spec.columns(name)):
                # From one list per row to one list per column.
                column_views = [row_views[k] for row_views in views]
                cells |= _cells(column, column_views, spec)
                for i, view in enumerate(column_views):
                    # Later columns may start from this one.
                    rows[i] = replace(rows[i], views={**rows[i].views, column: view.text})
        schema = pa.schema(list(cells), metadata={VIEWS_HEADER: json.dumps(self._header).encode()})
        with replaced(self.paths[part]) as temporary:
            table = pa.table({field.name: values for field, values in cells.items()}, schema=schema)
            pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
        return len(rows)


def _refuse_foreign_part(path: Path) -> None:
    """Refuse to remove a Parquet file that opencse did not write; other tools name parts alike.

    Raises:
        OpencseError: The file is one.
    """
    try:
        metadata = parquet_schema(path).metadata or {}
    # A killed build may leave a damaged one.
    except OpencseError:
        return
    if VIEWS_HEADER not in metadata:
        raise OpencseError(
            f"{path}: was not written by opencse, so it is not replaced",
            "Choose another output folder, or move it away.",
        )


def _cells(column: str, views: Sequence[ViewText], spec: View) -> dict[pa.Field, Sequence[Any]]:
    """Return the values of a built column, of its rules and of its scores, by field."""
    rule = pa.field(f"{column}.rule", pa.string(), nullable=False)
    cells: dict[pa.Field, Sequence[Any]] = {
        pa.field(column, pa.string()): [view.text for view in views],
        rule: [view.rule for view in views],
    }
    for score, kind in spec.scores.items():
        field = pa.field(f"{column}.{score}", _TYPES[kind])
        cells[field] = [view.scores.get(score) for view in views]
    return cells


def _views(opened: OpenedView, rows: Sequence[SourceRow], spec: View) -> list[list[ViewText]]:
    """Return the views of some rows, one for each column.

    Rows whose column `spec.of` is null get none.
    """
    sources = list(rows)
    if spec.of != "text":
        sources = []
        for row in rows:
            text = row.views[spec.of]
            if text is not None:
                sources.append(replace(row, text=text))
    # By number, because rows without a source were left out above.
    built = {}
    for row, view in zip(sources, opened(sources), strict=True):
        built[row.id] = view if isinstance(view, list) else [view]
    missing = ViewText(text=None, rule=f"no {spec.of}", scores=dict.fromkeys(spec.scores))
    none = [missing] * len(spec.columns(""))
    return [built.get(row.id, none) for row in rows]


_TYPES = {"float": pa.float32(), "int": pa.int32(), "string": pa.string()}


def build_order(specs: Mapping[str, View]) -> list[str]:
    """Return the names of the views in build order, each after the columns it needs.

    Raises:
        OpencseError: A name is reserved or has a dot, a needed column is missing, or two columns
            need each other.
    """
    for name in specs:
        if name in ("id", "text", "") or "." in name:
            remedy = "Choose a name without a dot, other than id and text."
            raise OpencseError(f"build.{name}: not a valid name of a column", remedy)
        if specs[name].of != "text" and specs[name].needs_corpus:
            raise OpencseError(
                f"build.{name}: of: this kind searches the corpus itself", "Remove `of`."
            )
    column_makers(specs)
    order: list[str] = []
    while len(order) < len(specs):
        built = {column for name in order for column in specs[name].columns(name)}
        ready = []
        for name in specs:
            if name not in order and built.issuperset(specs[name].sources):
                ready.append(name)
        if not ready:
            name = next(name for name in specs if name not in order)
            lacking = [need for need in specs[name].sources if need not in built]
            raise OpencseError(
                f"build.{name}: needs the column {lacking[0]!r}, which is not built before it",
                f"Add [build.{lacking[0]}], or remove the option that names the column.",
            )
        order += ready
    return order


def column_makers(specs: Mapping[str, View]) -> dict[str, str]:
    """Return the name of the view that builds each column, by column.

    Raises:
        OpencseError: Two views build the same column.
    """
    out: dict[str, str] = {}
    for name, spec in specs.items():
        for column in spec.columns(name):
            if column in out:
                raise OpencseError(
                    f"build.{name} and build.{out[column]} both build {column!r}",
                    "Rename one of them.",
                )
            out[column] = name
    return out


def _parameters(spec: View) -> dict[str, Any]:
    """Return the kind and the options, including those of a nested view."""
    parameters: dict[str, Any] = {"kind": spec.kind}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, View):
            value = _parameters(value)
        parameters[field.name] = value
    return parameters


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the header of a Parquet file that `build_views` wrote.

    Raises:
        OpencseError: The file was not written by `build_views`.
    """
    try:
        return json_object(parquet_metadata(path)[VIEWS_HEADER].decode(), str(path), "")
    except (KeyError, ValueError, OpencseError) as error:
        raise OpencseError(
            f"{path} is not a complete file of built views", "Build it again, with --overwrite."
        ) from error
