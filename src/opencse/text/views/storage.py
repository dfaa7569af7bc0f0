"""The file format of built views: Parquet columns, and a header that determines the content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from opencse.foundation.errors import OpencseError
from opencse.foundation.parquet import parquet_metadata, parquet_schema
from opencse.foundation.reading import json_object
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow
from opencse.version import __version__

FORMAT = 1
HEADER = b"opencse.text.views.registry"
RESERVED = ("id", "text")
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
        if specs[name].of != "text" and specs[name].searches_corpus:
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


def build_header(
    specs: Mapping[str, ConstructorSpec],
    digests: Mapping[str, str],
    *,
    corpus: str,
    rows: int,
    seed: int,
    part_rows: int,
) -> dict[str, Any]:
    """Return everything that determines the output: hash of the texts, version, options and hashes of weights.

    Args:
        specs: Specifications by name.
        digests: Hash of the weights of each.
        corpus: Hash of the texts.
        rows: Number of texts.
        seed: The only source of randomness.
        part_rows: Rows in a file.
    """
    columns = {name: {**_parameters(spec), "weights_sha256": digests[name]} for name, spec in specs.items()}
    return {
        "format": FORMAT,
        "tool": f"opencse {__version__}",
        "texts_sha256": corpus,
        "rows": rows,
        "seed": seed,
        "rows_per_part": part_rows,
        "columns": json.loads(json.dumps(columns)),
    }


def _parameters(spec: ConstructorSpec) -> dict[str, Any]:
    """Return the kind and the options, including those of a nested specification."""
    values = ((field.name, getattr(spec, field.name)) for field in dataclasses.fields(spec))
    return {"kind": spec.kind, **{k: _parameters(v) if isinstance(v, ConstructorSpec) else v for k, v in values}}


def texts_hash(texts: Iterable[str]) -> tuple[str, int]:
    """Return a SHA-256 of the texts in order, and their number."""
    joined, count = hashlib.sha256(), 0
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        joined.update(len(data).to_bytes(8, "little") + data)
        count += 1
    return joined.hexdigest(), count


def views_schema(specs: Mapping[str, ConstructorSpec], head: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema: `id`, `text`, and the text, rule and scores of each built column."""
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string(), nullable=False)]
    for name, maker in column_makers(specs).items():
        fields += [pa.field(name, pa.string()), pa.field(f"{name}.rule", pa.string(), nullable=False)]
        fields += [pa.field(f"{name}.{score}", _TYPES[kind]) for score, kind in specs[maker].scores.items()]
    return pa.schema(fields, metadata={HEADER: json.dumps(head).encode()})


def views_table(
    rows: Sequence[SourceRow],
    views: Mapping[str, Sequence[BuiltView]],
    specs: Mapping[str, ConstructorSpec],
    layout: pa.Schema,
) -> pa.Table:
    """Return rows and their views, by column, as a table of the given schema."""
    columns: dict[str, list[Any]] = {"id": [row.id for row in rows], "text": [row.text for row in rows]}
    for name, maker in column_makers(specs).items():
        columns[name] = [view.text for view in views[name]]
        columns[f"{name}.rule"] = [view.rule for view in views[name]]
        for score in specs[maker].scores:
            columns[f"{name}.{score}"] = [view.scores.get(score) for view in views[name]]
    return pa.table(columns, schema=layout)


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


def built_columns(path: str | Path) -> list[str]:
    """Return the names of the built columns in a Parquet file that `build_views` wrote."""
    return [name.removesuffix(".rule") for name in parquet_schema(path).names if name.endswith(".rule")]
