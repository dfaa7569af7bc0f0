"""The files of built views: Parquet columns, and a header that determines the content."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import make_folder, replaced_file
from opencse.foundation.reading import json_object
from opencse.foundation.tables import parquet_metadata, parquet_schema
from opencse.text.views.constructor import BuiltView, ConstructorSpec
from opencse.version import __version__

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
