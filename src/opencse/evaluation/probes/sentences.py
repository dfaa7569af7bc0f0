"""Sentences with transformed versions: the packaged set, a user's table, or built views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.text.corpus import column_names, read_rows

KINDS = ("paraphrase", "negation", "deletion", "insertion", "substitution", "random")
"""OssCSE's six transformations. Of these, only the negation says the opposite in nearly the same words."""

_ANCHORS = ("sentence", "text")


@dataclass(frozen=True, kw_only=True)
class ProbeSentences:
    """n sentences and their versions.

    Attributes:
        name: Name of the source.
        anchors: The sentences.
        versions: Transformed sentences by column; None if a row has none.
        total: Rows of the file, of which n were drawn.
    """

    name: str
    anchors: Sequence[str]
    versions: Mapping[str, Sequence[str | None]]
    total: int

    def __len__(self) -> int:
        return len(self.anchors)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The transformations among the versions, in the order of `KINDS`."""
        return tuple(kind for kind in KINDS if kind in self.versions)

    def pairs(self, column: str) -> tuple[np.ndarray, list[str], list[str]]:
        """Return the row numbers that have this version, their sentences, and the versions."""
        cells = self.versions[column]
        rows = [row for row, cell in enumerate(cells) if cell is not None]
        return np.array(rows, dtype=np.int64), [self.anchors[r] for r in rows], [str(cells[r]) for r in rows]


def packaged_sentences() -> Path:
    """Return the path of the sentences that come with the package."""
    return ASSETS / "probe" / "transformations.tsv"


def read_sentences(path: str | Path, *, limit: int = 2000, seed: int = 0) -> ProbeSentences:
    """Read sentences and their versions.

    Args:
        path: Any format of `opencse.text.corpus` that has columns, or a folder of built views. The column `sentence` or
            `text` holds the sentences, columns named as in `KINDS` their transformations, and further text columns may
            be given to training-pair statistics. Without a column `random`, another sentence of the file takes its
            place.
        limit: Maximum number of rows; more are sampled at random.
        seed: Seed of the sampling.

    Raises:
        OpencseError: There is no such file, it has no column of sentences, no version of them, or no usable row.
    """
    path = Path(path)
    names = column_names(path)
    anchor = next((name for name in _ANCHORS if name in names), None)
    if anchor is None:
        raise OpencseError(f"{path}: no column 'sentence' or 'text' among {', '.join(names) or 'none'}", "Name it so.")
    columns = [name for name in names if _is_version(name)]
    if not columns:
        raise OpencseError(
            f"{path}: no transformed version of the sentences", f"Add at least one of the columns {', '.join(KINDS)}."
        )
    rows = [row for row in read_rows(path, (anchor, *columns)) if row[0] is not None]
    if not rows:
        raise OpencseError(f"{path}: holds no sentence", "Give at least one row.")
    total = len(rows)
    if total > limit:
        rows = [rows[i] for i in np.sort(np.random.default_rng(seed).choice(total, limit, replace=False))]
    anchors, *cells = (list(column) for column in zip(*rows, strict=True))
    # A built substitution is SAN's hard negative, not OssCSE's transformation, which keeps the meaning.
    built = "substitution.rule" in names
    columns = ["negative.substitution" if built and name == "substitution" else name for name in columns]
    versions: dict[str, Sequence[str | None]] = dict(zip(columns, cells, strict=True))
    if "random" not in versions and len(anchors) > 1:
        versions["random"] = _another_row(anchors, seed)
    empty = [column for column, cells in versions.items() if not any(cell is not None for cell in cells)]
    if len(empty) == len(columns):
        raise OpencseError(f"{path}: the columns {', '.join(empty)} are empty", "Fill at least one of them.")
    versions = {column: cells for column, cells in versions.items() if column not in empty}
    return ProbeSentences(name=path.name, anchors=[str(a) for a in anchors], versions=versions, total=total)


def _is_version(name: str) -> bool:
    """Return whether a column holds a transformation or a training view (`positive`, `negative.1`), not a score."""
    stem, _, rest = name.partition(".")
    return name in KINDS or (stem in ("positive", "negative") and (not rest or rest.isdigit()))


def _another_row(anchors: Sequence[str | None], seed: int) -> list[str | None]:
    """Return another sentence for each row, like an in-batch negative; None if all others are copies of it."""
    count, words = len(anchors), [str(anchor).lower().split() for anchor in anchors]
    shift = np.random.default_rng(seed).integers(1, count, count)

    def other(row: int) -> str | None:
        places = ((row + int(shift[row]) + k) % count for k in range(count))
        return next((anchors[place] for place in places if words[place] != words[row]), None)

    return [other(row) for row in range(count)]
