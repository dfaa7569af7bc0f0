"""Building only what a corpus lacks, beside the columns that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.io.corpus import column_names, read_rows
from opencse.io.files import replaced_file
from opencse.io.parquet import read_parquet
from opencse.views.constructor import ConstructorSpec
from opencse.views.mining.mined_spec import MinedSpec


def missing_specs(
    specs: Mapping[str, ConstructorSpec], wanted: Collection[str], present: Collection[str]
) -> dict[str, ConstructorSpec]:
    """The constructors that make those wanted columns that are not present, and the ones that these need.

    Args:
        specs: Constructors by name, as in a recipe's `[build]`.
        wanted: Columns that views read.
        present: Columns of the corpus.
    """
    maker = {column: name for name, spec in specs.items() for column in spec.columns(name)}
    front = [maker[column] for column in wanted if column in maker and column not in present]
    found: set[str] = set()
    while front:
        name = front.pop()
        if name not in found:
            found.add(name)
            front += [maker[need] for need in specs[name].sources if need in maker]
    return {name: spec for name, spec in specs.items() if name in found}


def has_views(specs: Mapping[str, ConstructorSpec], corpus: str | Path) -> bool:
    """Whether `build` wrote this corpus, with all or some of these constructors: a rule stands beside each column.

    A raw table may have a column of the same name, such as "number", and is none of ours.
    """
    present = column_names(corpus)
    return any(f"{column}.rule" in present for name, spec in specs.items() for column in spec.columns(name))


def with_backbone(specs: Mapping[str, ConstructorSpec], backbone: str | Path) -> dict[str, ConstructorSpec]:
    """The constructors, with this model where they ask for `model = "backbone"`: the one that is to be trained."""
    return {
        name: replace(spec, model=str(backbone)) if isinstance(spec, MinedSpec) and spec.model == "backbone" else spec
        for name, spec in specs.items()
    }


def beside(corpus: str | Path, built: str | Path, columns: Sequence[str]) -> Path:
    """Put columns of a corpus beside those that were built from it.

    Args:
        corpus: What was built from.
        built: The folder that `build` wrote.
        columns: Columns of the corpus to keep; those that were built are not taken from it.

    Returns:
        `built` where there is nothing to keep, else the file `built/joined.parquet`.
    """
    built = Path(built)
    table = read_parquet(sorted(built.glob("part-*.parquet")))
    kept = [column for column in columns if column in column_names(corpus) and column not in table.column_names]
    if not kept:
        return built
    # The builder leaves out blank sentences, and so must this.
    rows = [row[1:] for row in read_rows(corpus, ("text", *kept)) if row[0] is not None and row[0].strip()]
    for column, cells in zip(kept, zip(*rows, strict=True), strict=True):
        table = table.append_column(column, pa.array(cells, pa.string()))
    with replaced_file(built / "joined.parquet") as path:
        pq.write_table(table, path, write_page_checksum=True)
    return built / "joined.parquet"
