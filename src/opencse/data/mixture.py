"""From sentences with views to rows to train on: so many of each sort, each with the views that it is there for."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.errors import OpencseError
from opencse.io.corpus import content_hash, read_rows
from opencse.io.files import replaced_file
from opencse.io.parquet import parquet_metadata
from opencse.recipes import MixturePart


def mix(
    built: str | Path,
    parts: Mapping[str, MixturePart],
    out: Path,
    *,
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the training rows: `text`, every view that some part keeps, and `part`, the name of the row's part.

    A sentence can stand in several parts, with other views in each. A part that has fewer sentences than rows repeats
    them all, as often as needed; one that fits no sentence is left out.

    Args:
        built: Sentences and views, in any format of `opencse.io.corpus`.
        parts: The sorts of rows.
        out: The Parquet file to write; one that was made from the same input is left as it is.
        seed: Chooses the rows and their order.
        notify: Receives a note on each part that is left out.

    Returns:
        `out`.

    Raises:
        OpencseError: No part finds a sentence that has all that it needs.
    """
    parts = {name: part for name, part in parts.items() if part.rows}
    settings = {name: asdict(part) for name, part in parts.items()}
    made_from = hashlib.sha256(json.dumps([content_hash(built), settings, seed]).encode()).hexdigest()
    if out.is_file() and parquet_metadata(out).get(b"made_from") == made_from.encode():
        return out
    columns = list(dict.fromkeys(c for part in parts.values() for c in (*part.needs, *part.keeps)))
    sentences = [row for row in read_rows(built, ("text", *columns)) if row[0] is not None and row[0].strip()]
    rows: list[tuple[str | None, ...]] = []
    lacking: list[str] = []
    for name, part in parts.items():
        needed, kept = ([columns.index(c) + 1 for c in names] for names in (part.needs, (*part.needs, *part.keeps)))
        fitting = [
            row
            for row in sentences
            if all(row[i] for i in needed) and (part.words is None or len((row[0] or "").split()) <= part.words)
        ]
        if not fitting:
            lacking.append(f"{name} ({_requirement(part)})")
            continue
        drawn = _drawn(fitting, part.rows, random.Random(f"{seed} {name}"))
        rows += [(row[0], *(row[i] if i in kept else None for i in range(1, len(row))), name) for row in drawn]
    if not rows:
        raise OpencseError(
            f"none of the {len(sentences)} sentences fits a part of the training rows: {', '.join(lacking)}",
            "Give more text. The views are made by English grammar: text in another language gives none.",
        )
    for each in lacking:
        notify(f"no sentence fits the part {each} of the training rows: it is left out")
    random.Random(seed).shuffle(rows)
    names = ["text", *columns, "part"]
    schema = pa.schema([(name, pa.string()) for name in names], metadata={"made_from": made_from})
    with replaced_file(out) as path:
        pq.write_table(
            pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)), schema=schema),
            path,
            write_page_checksum=True,
        )
    return out


def _requirement(part: MixturePart) -> str:
    """Return the requirement of a part, in words."""
    needs = [f"needs {' and '.join(part.needs)}"] if part.needs else []
    return ", ".join([*needs, *([] if part.words is None else [f"at most {part.words} words"])])


def _drawn(
    sentences: Sequence[tuple[str | None, ...]], count: int, chance: random.Random
) -> Iterator[tuple[str | None, ...]]:
    """Yield a random sample of rows; each row occurs equally often, up to one."""
    while count > 0:
        drawn = chance.sample(sentences, min(count, len(sentences)))
        yield from drawn
        count -= len(drawn)
