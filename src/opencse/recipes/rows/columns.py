"""The columns that a corpus lacks, and built columns beside those that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file
from opencse.foundation.parquet import read_parquet
from opencse.text.corpus import Corpus
from opencse.text.mined.debiased_positives import DebiasedPositives
from opencse.text.mined.mined_spec import MinedSpec
from opencse.text.mined.vectors import Pooling
from opencse.text.views.constructor import ConstructorSpec
from opencse.text.views.storage import column_makers


def missing_specs(
    specs: Mapping[str, ConstructorSpec], wanted: Collection[str], present: Collection[str] = ()
) -> dict[str, ConstructorSpec]:
    """Return the constructors of the wanted columns that are not present, and the constructors that these depend on.

    Args:
        specs: Constructors by name, as in a recipe's `[build]`.
        wanted: Columns that are needed.
        present: Columns of the corpus.
    """
    maker = column_makers(specs)
    queue = [maker[column] for column in wanted if column in maker and column not in present]
    found: set[str] = set()
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += [maker[need] for need in specs[name].sources if need in maker]
    return {name: spec for name, spec in specs.items() if name in found}


def chosen_specs(specs: Mapping[str, ConstructorSpec], only: Collection[str]) -> dict[str, ConstructorSpec]:
    """Return the constructors that a user chose by name or by column, and the constructors that these depend on.

    Raises:
        OpencseError: A name is neither that of a constructor nor that of a column.
    """
    maker = column_makers(specs)
    for name in only:
        if name not in maker and name not in specs:
            raise OpencseError(f"--only {name}: no such column", f"The recipe builds {', '.join(specs)}.")
    columns = [column for name in only for column in (specs[name].columns(name) if name in specs else (name,))]
    return missing_specs(specs, columns)


def built_by_opencse(specs: Mapping[str, ConstructorSpec], present: Collection[str]) -> bool:
    """Return whether a corpus was built with some of these constructors: it then has a column `NAME.rule` for each.

    A column `NAME` alone says little: a raw table may have a column "number".

    Args:
        specs: Constructors by name, as in a recipe's `[build]`.
        present: Columns of the corpus.
    """
    return any(f"{column}.rule" in present for name, spec in specs.items() for column in spec.columns(name))


def with_models(
    specs: Mapping[str, ConstructorSpec], models: Mapping[str, Backbone], pooling: Pooling = "backbone"
) -> dict[str, ConstructorSpec]:
    """Return the constructors with the names of models in place of their roles, for those that mine.

    Args:
        specs: Constructors by name, as in a recipe's `[build]`.
        models: Models by role: `backbone`, the model to be trained, and the recipe's first stages.
        pooling: Pooling of the backbone, for constructors that name none.
    """
    found = dict(specs)
    for name, spec in specs.items():
        if not isinstance(spec, MinedSpec | DebiasedPositives) or spec.model not in models:
            continue
        own = spec.pooling == "backbone" and spec.model == "backbone"
        found[name] = replace(spec, model=models[spec.model].name, pooling=pooling if own else spec.pooling)
    return found


def add_columns(corpus: Corpus, built: Path, columns: Sequence[str]) -> Corpus:
    """Add columns of a corpus to the columns that were built from it.

    Args:
        corpus: The sentences that `built` was built from.
        built: The folder that `build_views` wrote.
        columns: Columns of the corpus to add; of two with one name, the built one is kept.

    Returns:
        `built` if there is nothing to add, else the file `built/joined.parquet`.
    """
    table = read_parquet(sorted(built.glob("part-*.parquet")))
    kept = [column for column in columns if column in corpus.columns and column not in table.column_names]
    if not kept:
        return Corpus(built)
    # Blank sentences are left out, as in the builder.
    rows = [row[1:] for row in corpus.rows(("text", *kept)) if row[0] is not None and row[0].strip()]
    for column, cells in zip(kept, zip(*rows, strict=True), strict=True):
        table = table.append_column(column, pa.array(cells, pa.string()))
    with replaced_file(built / "joined.parquet") as path:
        pq.write_table(table, path, write_page_checksum=True)
    return Corpus(built / "joined.parquet")
