"""Data in any form as a file: paths as they are, everything else as a Parquet file in the cache.

`data_file` converts texts and tables in memory, saved data sets and data sets of a hub, for every
argument that takes a path.

Everything is converted by pyarrow or by the library that made it. Equal rows give the same file,
whatever object they come from, so that a run on a data frame equals one on a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.files import replaced
from opencse.foundation.reading import error_reason
from opencse.text.corpus import content_hash, demo_path

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hub:"
"""What a data set of a hub begins with: `hub:owner/name`, or `hub:owner/name:split`."""

_REMEDY = "Give a path, strings, rows as dicts, or a data frame with a column of text."


def as_tables(given: Any) -> Sequence[Any]:
    """Return what a user gave for a list; a single path, table or other object is one item."""
    if given is None:
        return ()
    if isinstance(given, str | Path) or is_table(given) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def is_path(given: Any) -> bool:
    """Return whether this is the path of a file or folder that is read as it is."""
    return isinstance(given, str | Path) and not is_named_dataset(given)


def is_named_dataset(given: Any) -> bool:
    """Return whether this is a data set of a hub, or a folder that `save_to_disk` wrote."""
    if not isinstance(given, str | Path):
        return False
    if str(given).startswith(HUB):
        return True
    folder = Path(given)
    saved = ("state.json", "dataset_dict.json")
    return folder.is_dir() and any((folder / file).is_file() for file in saved)


def is_table(given: Any) -> bool:
    """Return whether an object in memory is a table, and not a sequence of texts."""
    if isinstance(given, str | Path):
        return False
    # By its module: the checks of a command ask this before pyarrow is imported.
    if isinstance(given, Mapping) or type(given).__module__.partition(".")[0] == "pyarrow":
        return True
    if isinstance(given, Sequence):
        return bool(given) and isinstance(given[0], Mapping)
    # A column of such a library has no names of columns, and is read as a sequence of texts.
    has_columns = hasattr(given, "columns") or hasattr(given, "column_names")
    return has_columns and (hasattr(given, "__arrow_c_stream__") or hasattr(given, "with_format"))


def data_file(given: Any, demo: str = "sentences.txt") -> Path:
    """Return the path of a user's data; what is in memory, or in a data set, is written to the cache.

    Args:
        given: A path, `"demo"`, a data frame of pandas or polars, an Arrow table, a data set of the
            library datasets, the folder that its `save_to_disk` wrote, `hub:owner/name`, rows as
            dicts, or strings.
        demo: The file of the package that is `"demo"`.

    Raises:
        OpencseError: It cannot be read, or is a data set of several splits.
    """
    if is_named_dataset(given) or is_table(given):
        return _parquet_of(given)
    if isinstance(given, str | Path):
        return demo_path(given, demo)
    return _parquet_of({"text": strings_of(given)})


def data_name(given: Any) -> str:
    """Return the name of a user's data in reports: the file's name, or the type of an object in memory."""
    if isinstance(given, str | Path):
        return Path(given).name
    return f"texts in memory ({type(given).__name__})"


def strings_of(given: Any) -> list[str]:
    """Return the strings among texts in memory, of which some may be None.

    Raises:
        OpencseError: The object is no sequence of strings.
    """
    if isinstance(given, Mapping) or hasattr(given, "columns") or not isinstance(given, Iterable):
        raise OpencseError(f"texts of the type {type(given).__name__} cannot be read", _REMEDY)
    texts = [text for text in given if text is not None]
    for text in texts:
        if not isinstance(text, str):
            raise OpencseError(
                f"a text is {type(text).__name__}, not a string: {text!r:.60}", _REMEDY
            )
    return texts


def _parquet_of(given: Any) -> Path:
    """Return the Parquet file of a table (`is_table`) or of a data set (`is_named_dataset`).

    Raises:
        OpencseError: It cannot be read, or has several splits.
    """
    import pyarrow as pa

    loaded = _named_dataset(given) if isinstance(given, str | Path) else given
    kind = type(loaded).__name__
    try:
        table = _plain(_as_arrow(loaded))
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise OpencseError(
            f"the table in memory ({kind}) cannot be converted ({error_reason(error)})", _REMEDY
        ) from error
    if not table.num_rows:
        raise OpencseError(f"the table in memory ({kind}) has no row", _REMEDY)
    return _cached(table)


def _named_dataset(given: str | Path) -> Any:
    """Return a data set of a hub, which is only fetched if the user writes `hub:`, or a saved one."""
    datasets = imported("datasets", "datasets")
    name = str(given)
    try:
        if not name.startswith(HUB):
            return datasets.load_from_disk(name)
        repository, _, split = name.removeprefix(HUB).partition(":")
        return datasets.load_dataset(repository, split=split or "train")
    except Exception as error:
        raise OpencseError(
            f"the data set {name} cannot be read ({error_reason(error)})",
            "Check its name and its split, as in hub:owner/name:train.",
        ) from error


def _as_arrow(given: Any) -> pa.Table:
    """Return a table of any library as an Arrow table."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return pa.table({"text": given})
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if hasattr(given, "with_format"):
        # Of the library datasets; indices of `select` and `shuffle` are applied.
        return given.with_format("arrow")[:]
    if isinstance(given, Sequence):
        return _from_rows(given)
    if type(given).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(given, preserve_index=False)
    return pa.table(given)


def _from_mapping(given: Mapping[str, Any]) -> pa.Table:
    """Return the only split of several data sets, or columns by name, as a table."""
    import pyarrow as pa

    splits = [name for name, part in given.items() if hasattr(part, "with_format")]
    if not splits:
        return pa.table(dict(given))
    if len(splits) > 1:
        raise OpencseError(
            f"the data set has the splits {', '.join(splits)}",
            f"Give one of them, such as data[{splits[0]!r}].",
        )
    return _as_arrow(given[splits[0]])


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table; a row may lack some of the columns."""
    import pyarrow as pa

    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pa.table(columns)


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without notes of its library, and with one type for text."""
    import pyarrow as pa

    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        columns[name] = column.cast(kind)
    return pa.table(columns)


def _cached(table: pa.Table) -> Path:
    """Return the file of a table in the cache, named by a hash of its bytes."""
    import pyarrow.parquet as pq

    # Here, because it imports NumPy, which `opencse --help` does without.
    from opencse.foundation.cache import cache_place, cache_root

    draft = cache_root() / "inputs" / "table.parquet"
    with replaced(draft) as temporary:
        pq.write_table(table, temporary)
        digest = content_hash(temporary)
        out = cache_place("inputs", f"table-{digest}.parquet")
        if not out.is_file():
            with replaced(out) as final:
                pq.write_table(table, final)
    return out
