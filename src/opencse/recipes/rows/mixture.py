"""The mixture of training rows: a number of rows of each part, with the views that the part names."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from opencse.foundation.errors import OpencseError
from opencse.foundation.parquet import is_made_from, write_texts
from opencse.recipes import MixturePart
from opencse.text.corpus import Corpus, Row

T = TypeVar("T")


def mix_rows(
    built: Corpus,
    parts: Mapping[str, MixturePart],
    out: Path,
    *,
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Write the training rows, with the columns `text`, every view that a part keeps, and `part`, the part's name.

    A sentence can occur in several parts, with different views. A part with fewer sentences than rows repeats all of
    them equally often; a part without sentences is left out.

    Args:
        built: Sentences and views.
        parts: The parts of the mixture, by name.
        out: The Parquet file to write; not written again if it was made from the same input.
        seed: Seed of the sample of rows and of their order.
        notify: Receives a note on each part that is left out.

    Returns:
        The rows, opened.

    Raises:
        OpencseError: No sentence has the columns that any part needs.
    """
    parts = {name: part for name, part in parts.items() if part.rows}
    settings = {name: asdict(part) for name, part in parts.items()}
    made_from = hashlib.sha256(json.dumps([built.content_hash, settings, seed]).encode()).hexdigest()
    if is_made_from(out, made_from):
        return Corpus(out)
    columns = list(dict.fromkeys(c for part in parts.values() for c in (*part.needs, *part.keeps)))
    sentences = [row for row in built.rows(("text", *columns)) if row[0] is not None and row[0].strip()]
    rows: list[Row] = []
    without_rows: list[str] = []
    for name, part in parts.items():
        needed, cells = ([columns.index(c) + 1 for c in names] for names in (part.needs, (*part.needs, *part.keeps)))
        fitting = [
            row
            for row in sentences
            if all(row[i] for i in needed) and (part.words is None or len((row[0] or "").split()) <= part.words)
        ]
        if not fitting:
            without_rows.append(f"{name} ({_requirement(part)})")
            continue
        drawn = draw_evenly(fitting, part.rows, random.Random(f"{seed} {name}"))
        rows += [(row[0], *(row[i] if i in cells else None for i in range(1, len(row))), name) for row in drawn]
    if not rows:
        raise OpencseError(
            f"none of the {len(sentences)} sentences fits any part of the training rows: {', '.join(without_rows)}",
            "Give more text. The views are built by grammar rules: they need sentences in English, or another language "
            "that has rules.",
        )
    for empty_part in without_rows:
        notify(f"no sentence fits the part {empty_part} of the training rows: it is left out")
    random.Random(seed).shuffle(rows)
    names = ["text", *columns, "part"]
    write_texts(out, dict(zip(names, zip(*rows, strict=True), strict=True)), made_from)
    return Corpus(out)


def _requirement(part: MixturePart) -> str:
    """Describe in words which sentences a part takes."""
    needs = [f"needs {' and '.join(part.needs)}"] if part.needs else []
    return ", ".join([*needs, *([] if part.words is None else [f"at most {part.words} words"])])


def draw_evenly(rows: Sequence[T], count: int, rng: random.Random) -> Iterator[T]:
    """Yield a random sample of rows, with repetition if there are too few: the counts of rows differ by at most 1."""
    while count > 0:
        drawn = rng.sample(rows, min(count, len(rows)))
        yield from drawn
        count -= len(drawn)
