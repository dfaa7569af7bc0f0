"""Paraphrases chosen among candidates by match error rate (OssCSE §4, Appendix A), and a table as their source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from opencse.errors import OpencseError
from opencse.views.constructor import BuiltView, ConstructorSpec, SourceRow, row_random

Pick = Literal["highest", "lowest", "random", "first"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A possible paraphrase, and where it comes from (a pivot language, a system)."""

    text: str
    label: str = ""


class CandidateSource(Protocol):
    """An opened constructor that can tell all that it has to choose from."""

    @property
    def digest(self) -> str:
        """As in `Constructor`."""
        ...

    def candidates(self, rows: Sequence[SourceRow]) -> list[list[Candidate]]:
        """Return all candidates of each row."""
        ...


def check_window(window: tuple[float, float]) -> None:
    """Raise ValueError where a window of match error rates is not one."""
    if len(window) != 2 or not 0 <= window[0] <= window[1] <= 1:
        raise ValueError(f"window must be a range within [0, 1], not {list(window)} (OssCSE: [0.15, 0.6])")


def choose(
    rows: Sequence[SourceRow],
    candidates: Sequence[Sequence[Candidate]],
    *,
    window: tuple[float, float],
    pick: Pick,
    seed: int,
    kind: str,
) -> list[BuiltView]:
    """Choose one candidate per row whose match error rate lies in the window (both ends included).

    The rate keeps out near-copies (lower end) and corrupted translations (upper end). Copies up to case, and all but
    the first of equal candidates, are dropped.

    Args:
        rows: n rows.
        candidates: n lists.
        window: Least and greatest match error rate.
        pick: Which of those that are left: highest rate, lowest, a random one, or the first.
        seed: For "random".
        kind: Name that the seed is mixed with.
    """
    from opencse.surface import match_error_rate

    flat = [(i, candidate) for i, few in enumerate(candidates) for candidate in distinct(rows[i].text, few)]
    rates = match_error_rate([rows[i].text for i, _ in flat], [c.text for _, c in flat], workers=1)
    fitting: list[list[tuple[float, Candidate]]] = [[] for _ in rows]
    for (i, candidate), rate in zip(flat, rates.tolist(), strict=True):
        if window[0] <= rate <= window[1]:
            fitting[i].append((rate, candidate))
    out = []
    for row, few, left in zip(rows, candidates, fitting, strict=True):
        if not left:
            why = "none in window" if few else "no candidate"
            out.append(BuiltView(text=None, rule=why, scores={"mer": None, "candidates": len(few)}))
            continue
        if pick == "random":
            rate, chosen = row_random(seed, kind, row).choice(left)
        elif pick == "first":
            rate, chosen = left[0]
        else:
            rate, chosen = (max if pick == "highest" else min)(left, key=lambda pair: pair[0])
        out.append(
            BuiltView(text=chosen.text, rule=chosen.label or "chosen", scores={"mer": rate, "candidates": len(few)})
        )
    return out


def distinct(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without copies of the text, up to case and white space, and without repetitions."""
    seen, out = {" ".join(text.lower().split())}, []
    for candidate in candidates:
        key = " ".join(candidate.text.lower().split())
        if key and key not in seen:
            seen.add(key)
            out.append(candidate)
    return out


@dataclass(frozen=True, kw_only=True)
class CandidateTable(ConstructorSpec):
    """Choose paraphrases from a table that lists several for each text.

    Attributes:
        path: A Parquet, CSV, TSV or JSONL file.
        text_column: Column with the sentence; rows of the corpus are looked up by it.
        candidate_column: Column with a candidate, or with a list of them.
        label_columns: Columns that say where a candidate comes from: recorded as the rule.
        window: Least and greatest match error rate (OssCSE: 0.15 and 0.6).
        pick: Which of the candidates in the window: "highest" rate, "lowest", "random" or "first".
    """

    kind: ClassVar[str] = "candidate_table"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float", "candidates": "int"}

    path: str
    text_column: str = "text"
    candidate_column: str = "candidate"
    label_columns: tuple[str, ...] = ()
    window: tuple[float, float] = (0.15, 0.6)
    pick: Pick = "highest"

    def __post_init__(self) -> None:
        check_window(self.window)

    def open(self, *, seed: int = 0, workers: int = 1) -> TableChooser:
        """Read the table."""
        return TableChooser(self, seed=seed)


class TableChooser:
    """An opened `CandidateTable`."""

    def __init__(self, spec: CandidateTable, *, seed: int = 0) -> None:
        self._spec, self._seed = spec, seed
        path = Path(spec.path)
        if not path.is_file():
            raise OpencseError(f"no table of candidates at {path}", "Mend `path`.")
        with path.open("rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        table = _read_table(path)
        for column in (spec.text_column, spec.candidate_column, *spec.label_columns):
            if column not in table.column_names:
                raise OpencseError(
                    f"{path} has no column {column!r}", f"It has {', '.join(map(repr, table.column_names))}."
                )
        labels = [table[column].to_pylist() for column in spec.label_columns]
        self._candidates: dict[str, list[Candidate]] = {}
        texts, values = table[spec.text_column].to_pylist(), table[spec.candidate_column].to_pylist()
        for i, (text, value) in enumerate(zip(texts, values, strict=True)):
            label = "/".join(str(column[i]) for column in labels)
            for one in value if isinstance(value, list) else [value]:
                if text is not None and one is not None:
                    self._candidates.setdefault(str(text).strip(), []).append(Candidate(text=str(one), label=label))

    def candidates(self, rows: Sequence[SourceRow]) -> list[list[Candidate]]:
        """Look up each row's text."""
        return [self._candidates.get(row.text.strip(), []) for row in rows]

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Look up each row's text, and choose."""
        spec = self._spec
        return choose(rows, self.candidates(rows), window=spec.window, pick=spec.pick, seed=self._seed, kind=spec.kind)


def _read_table(path: Path) -> Any:
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if path.suffix in (".csv", ".tsv"):
            from pyarrow import csv

            return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ","))
        if path.suffix == ".jsonl":
            from pyarrow import json

            return json.read_json(path)
    except pa.ArrowInvalid as error:
        raise OpencseError(f"{path} cannot be read: {str(error).splitlines()[0]}", "Mend the file.") from error
    raise OpencseError(f"{path} is no table of candidates", "It must end in .parquet, .csv, .tsv or .jsonl.")
