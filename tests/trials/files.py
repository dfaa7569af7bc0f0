"""Contents of files for trials: Parquet, Arrow and saved datasets, and files that are broken or endless."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from tests.trials.world import World


def write_socket(path: Path) -> None:
    import socket

    socket.socket(socket.AF_UNIX).bind(path.name)


def write_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def gzip_bomb() -> bytes:
    return gzip.compress(bytes(2**28), compresslevel=9, mtime=0)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


def zeroed(content: bytes, at: int, size: int) -> bytes:
    return content[:at] + bytes(size) + content[at + size :]


def parquet(columns: dict[str, list], **options: object) -> bytes:
    """The bytes of a Parquet file."""
    import pyarrow as pa

    return table_bytes(pa.table(columns), **options)


def table_bytes(table: object, **options: object) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def bad_utf8(world: World) -> bytes:
    """A Parquet file whose text column holds bytes that are not UTF-8."""
    import pyarrow as pa

    array = pa.array([*(s.encode() for s in world.sentences), b"a \xff b"], pa.binary())
    return table_bytes(pa.table({"text": pa.Array.from_buffers(pa.string(), len(array), array.buffers())}))


def column_twice(world: World) -> bytes:
    import pyarrow as pa

    column = pa.array(list(world.sentences))
    return table_bytes(pa.Table.from_arrays([column, column], names=["text", "text"]))


def dictionary_encoded(world: World) -> bytes:
    import pyarrow as pa

    return table_bytes(pa.table({"text": pa.array(list(world.sentences)).dictionary_encode()}))


def string_views(world: World) -> bytes:
    import pyarrow as pa

    texts = list(world.sentences)
    try:
        return table_bytes(pa.table({"text": pa.array(texts, pa.string_view())}))
    except pa.ArrowNotImplementedError:  # an older pyarrow reads views only
        return table_bytes(pa.table({"text": texts}))


def arrow(world: World) -> bytes:
    """The bytes of an Arrow stream."""
    import pyarrow as pa

    sink, table = io.BytesIO(), pa.table({"text": list(world.sentences)})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def saved_dataset(world: World) -> Path:
    folder = world.root / "dataset"
    if not folder.is_dir():
        import datasets

        datasets.disable_progress_bars()
        datasets.Dataset.from_dict({"text": list(world.sentences)}).save_to_disk(str(folder))
    return folder
