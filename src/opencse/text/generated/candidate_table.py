"""Paraphrases chosen by match error rate among candidates (OssCSE §4, Appendix A), such as those of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import file_extension, regular_file
from opencse.foundation.tables import TABLES, column_rows
from opencse.text.surface import match_error_rate
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, row_random

Pick = Literal["highest", "random"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A possible paraphrase and its origin, such as a pivot language or a system."""

    text: str
    label: str = ""


def check_error_rate_window(window: tuple[float, float]) -> None:
    """Raise ValueError if a window of match error rates is not a range within [0, 1]."""
    if len(window) != 2 or not 0 <= window[0] <= window[1] <= 1:
        raise ValueError(f"window must be a range within [0, 1], not {list(window)} (OssCSE: [0.15, 0.6])")


def distinct_candidates(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without copies of the text or duplicates; case and white space are ignored."""
    seen, out = {" ".join(text.lower().split())}, []
    for candidate in candidates:
        key = " ".join(candidate.text.lower().split())
        if key and key not in seen:
            seen.add(key)
            out.append(candidate)
    return out


class CandidateSource:
    """An opened kind that chooses one of several candidates for each row, or returns all of them.

    The choice is among those whose match error rate lies in the window (both ends included): its lower end excludes
    near-copies, the upper end corrupted translations. Copies of the text, and duplicate candidates, are dropped.

    Args:
        spec: A specification with `window` and `pick`.
        seed: Seed of a random choice.
        digest: Hash of the candidates, or of the models that make them.
    """

    def __init__(self, spec: Any, seed: int, digest: str) -> None:
        self._spec, self._seed, self.digest = spec, seed, digest

    def candidates(self, rows: Sequence[SourceRow]) -> list[list[Candidate]]:
        """Return all candidates of each row."""
        raise NotImplementedError

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Choose one candidate for each row."""
        pools, (low, high) = self.candidates(rows), self._spec.window
        flat = [(i, one) for i, pool in enumerate(pools) for one in distinct_candidates(rows[i].text, pool)]
        rates = match_error_rate([rows[i].text for i, _ in flat], [one.text for _, one in flat])
        fitting: list[list[tuple[float, Candidate]]] = [[] for _ in rows]
        for (i, candidate), rate in zip(flat, rates.tolist(), strict=True):
            if low <= rate <= high:
                fitting[i].append((rate, candidate))
        return [self._chosen(row, len(pool), left) for row, pool, left in zip(rows, pools, fitting, strict=True)]

    def _chosen(self, row: SourceRow, count: int, fitting: Sequence[tuple[float, Candidate]]) -> BuiltView:
        """Choose among the candidates in the window, with their match error rates, of so many."""
        if not fitting:
            why = "none in window" if count else "no candidate"
            return BuiltView(text=None, rule=why, scores={"mer": None, "candidates": count})
        if self._spec.pick == "random":
            rate, chosen = row_random(self._seed, self._spec.kind, row).choice(fitting)
        else:
            rate, chosen = max(fitting, key=lambda pair: pair[0])
        return BuiltView(text=chosen.text, rule=chosen.label or "chosen", scores={"mer": rate, "candidates": count})


@dataclass(frozen=True, kw_only=True)
class CandidateTable(ConstructorSpec):
    r"""Choose paraphrases from a table that lists several for each text.

    Attributes:
        path: A Parquet, CSV, TSV or JSONL file.
        text_column: Column with the sentence, by which rows of the corpus are looked up.
        candidate_column: Column with a candidate, or with a list of candidates.
        label_columns: Columns with the origin of a candidate; it is recorded as the rule.
        window: Minimum and maximum match error rate (OssCSE: 0.15 and 0.6).
        pick: The choice among the candidates in the window: that with the "highest" rate, or a "random" one.

    Example:
        [build.paraphrase]
        kind = "candidate_table"
        path = "paraphrases.csv"
        candidate_column = "paraphrase"

        >>> _ = Path("rain.csv").write_text("text,candidate\nIt rains.,There is rain.\n")
        >>> CandidateTable(path="rain.csv", window=(0, 1)).preview("It rains.", "We swim.")
        ['There is rain.', None]
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
        check_error_rate_window(self.window)

    def check(self) -> None:
        """Check that a table is named.

        Raises:
            OpencseError: None is.
        """
        if not self.path:
            raise OpencseError("paraphrases are chosen from a table", "Name it: --set build.paraphrase.path=TABLE.")

    def open(self, *, seed: int = 0, prepared: Any = None) -> TableChooser:
        """Read the table."""
        return TableChooser(self, seed=seed)


class TableChooser(CandidateSource):
    """An opened `CandidateTable`."""

    def __init__(self, spec: CandidateTable, *, seed: int = 0) -> None:
        spec.check()
        path = regular_file(spec.path)
        super().__init__(spec, seed, hashlib.sha256(path.read_bytes()).hexdigest())
        self._candidates: dict[str, list[Candidate]] = {}
        for text, value, *labels in _rows(path, (spec.text_column, spec.candidate_column, *spec.label_columns)):
            label = "/".join(map(str, labels))
            for one in value if isinstance(value, list) else [value]:
                if text is not None and one is not None:
                    self._candidates.setdefault(str(text).strip(), []).append(Candidate(text=str(one), label=label))

    def candidates(self, rows: Sequence[SourceRow]) -> list[list[Candidate]]:
        """Look up each row's text."""
        return [self._candidates.get(row.text.strip(), []) for row in rows]


def _rows(path: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the cells of every row of a table, in the given columns."""
    if file_extension(path) not in (".parquet", *TABLES):
        raise OpencseError(f"{path} is not a table of candidates", "It must end in .parquet, .csv, .tsv or .jsonl.")
    for _, _, cells in column_rows(path, columns):
        yield cells
