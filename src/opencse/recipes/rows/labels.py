"""Labels of the user: pairs that say the same or the opposite, and judged searches, as rows, views and terms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import parse_score, read_table, require_text, write_texts
from opencse.losses import MeaningLoss
from opencse.recipes import MixturePart, Recipe, ViewSettings
from opencse.text.corpus import Corpus

SAME, OPPOSITE, BETTER, WORSE = "label_same", "label_opposite", "label_better", "label_worse"
COLUMNS = (SAME, OPPOSITE, BETTER, WORSE)
_RELATIONS = {"same": SAME, "opposite": OPPOSITE}
_MOST_HITS = 200  # of one search; each two of different scores are a row
_MOST_REPEATED = 20
"""Times that a label is repeated at most: more would be learned by heart."""

LabelRow = tuple[str, str | None, str | None, str | None, str | None]
"""A text, and one text for each of `COLUMNS`, or None."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Labels of the user.

    Attributes:
        path: The file.
        rows: Pairs that say the same or the opposite, and triples of a search, its better and its worse hit.
        share: Share of the training rows that they make up; less if a label would be repeated more than twenty times.
    """

    path: Path
    rows: tuple[LabelRow, ...]
    share: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that some row has."""
        return tuple(name for name in COLUMNS if self.count(name))

    def of(self, column: str) -> list[LabelRow]:
        """Return the rows with a column."""
        place = COLUMNS.index(column) + 1
        return [row for row in self.rows if row[place] is not None]

    def count(self, column: str) -> int:
        """Return the number of rows with a column."""
        return len(self.of(column))

    def training_rows(self, others: int) -> dict[str, int]:
        """Return the number of rows to train on beside so many other rows, by the column that a label has.

        Judged searches count under the column of the better hit. Each kind gets at least one row.
        """
        wanted = min(_MOST_REPEATED * len(self.rows), self.share / (1 - self.share) * others)
        counts = {column: self.count(column) for column in self.columns if column != WORSE}
        return {column: max(1, round(wanted * count / len(self.rows))) for column, count in counts.items()}

    def describe(self) -> str:
        """Return the number of labels of each kind, in words."""
        kinds = {SAME: "same", OPPOSITE: "opposite", BETTER: "judged"}
        counts = (f"{self.count(column):,} {kind}" for column, kind in kinds.items() if self.count(column))
        return f"{len(self.rows):,} of {self.path.name} ({', '.join(counts)})"


def read_labels(path: str | Path, share: float = 0.1) -> Labels:
    """Read labels from a `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`.

    Args:
        path: A table with `sentence1`, `sentence2`, and either `label` (`same` or `opposite`) or `score`. Scores of one
            `sentence1` are compared, as `opencse compare` saves judged searches: a text of a higher score is nearer
            than one of a lower.
        share: Share of the training rows that the labels make up, above 0 and at most 0.5.

    Raises:
        OpencseError: The file cannot be read, a column is missing, a label is unknown, two labels contradict each
            other, one `sentence1` has more than 200 scored texts, or no label is left; the message has the line number.
    """
    path = Path(path)
    if not 0 < share <= 0.5:
        raise OpencseError(f"--label-share {share:g}: out of range", "Give a share above 0 and at most 0.5.")
    rows: list[LabelRow] = []
    scored: dict[str, dict[str, float]] = {}
    seen: dict[tuple[str, str], tuple[str | float, int]] = {}
    for line, cells in read_table(path):
        if not cells:
            continue
        first, second, label = _parsed(cells, path, line)
        pair = (first, second) if isinstance(label, float) else (min(first, second), max(first, second))
        before, at = seen.setdefault(pair, (label, line))
        if before != label:
            raise OpencseError(
                f"{path}, line {line}: these texts are {label!r}, but {before!r} in line {at}",
                "Keep one of the two lines.",
            )
        if label == "opposite" and first == second:
            raise OpencseError(f"{path}, line {line}: a text is its own opposite", "Correct or drop the line.")
        if isinstance(label, float):
            hits = scored.setdefault(first, {})
            hits[second] = label
            if len(hits) > _MOST_HITS:
                raise OpencseError(
                    f"{path}, line {line}: {first[:60]!r} has more than {_MOST_HITS} scored texts",
                    "Keep those that matter: each two of them are compared.",
                )
        else:
            rows.append(_label_row(first, {_RELATIONS[label]: second}))
    rows += _compared(scored)
    if not rows:
        raise OpencseError(
            f"{path} holds no label to train on", "Give pairs that are the same or the opposite, or differing scores."
        )
    return Labels(path=path, rows=tuple(dict.fromkeys(rows)), share=share)


def _parsed(cells: Mapping[str, object], path: Path, line: int) -> tuple[str, str, str | float]:
    """Return the two texts of a row, and its label or score."""
    texts: list[str] = []
    for name in ("sentence1", "sentence2"):
        cell = cells.get(name)
        if name not in cells:
            raise OpencseError(
                f"{path}, line {line}: no column {name!r} among {', '.join(map(str, cells))}",
                "Name the columns sentence1, sentence2 and label.",
            )
        texts.append(require_text(cell, name, path, line).strip())
    if str(cells.get("label") or "").strip():
        label = str(cells["label"]).strip().lower()
        if label not in _RELATIONS:
            raise OpencseError(f"{path}, line {line}: unknown label {label!r}", "Use same or opposite.")
        return texts[0], texts[1], label
    if cells.get("score") is None:
        raise OpencseError(f"{path}, line {line}: no label", "Give a column label (same or opposite), or score.")
    return texts[0], texts[1], parse_score(cells["score"], path, line)


def _label_row(text: str, others: Mapping[str, str]) -> LabelRow:
    return (text, others.get(SAME), others.get(OPPOSITE), others.get(BETTER), others.get(WORSE))


def _compared(scored: Mapping[str, Mapping[str, float]]) -> Iterator[LabelRow]:
    """Yield a row for each two texts of one first text with different scores."""
    for text, scores in scored.items():
        for (better, high), (worse, low) in product(scores.items(), scores.items()):
            if high > low:
                yield _label_row(text, {BETTER: better, WORSE: worse})


def with_labels(recipe: Recipe, labels: Labels) -> Recipe:
    """Return the recipe with views and parts for the labels, in the groups of its term of kind `meaning`.

    Pairs that say the same join `same`, opposite ones `opposed`. The better hit of a search says the same as the
    search, the worse one something else.

    Raises:
        OpencseError: The recipe has no such term, or no parts.
    """
    term = next((term for term in recipe.terms if isinstance(term, MeaningLoss)), None)
    if term is None or not recipe.corpus.parts:
        raise OpencseError(f"the recipe {recipe.name} cannot be trained on labels", "Use debias.")
    rows = labels.training_rows(sum(part.rows for part in recipe.corpus.parts.values()))
    needs = {column: (BETTER, WORSE) if column == BETTER else (column,) for column in rows}
    parts = {f"{column}s": MixturePart(rows=rows[column], needs=needs[column]) for column in rows}
    given = labels.columns
    labelled = replace(
        term,
        same=(*term.same, *(name for name in (SAME, BETTER) if name in given)),
        opposed=(*term.opposed, *((name,) for name in (OPPOSITE,) if name in given)),
        exchanged=(*term.exchanged, *(name for name in (WORSE,) if name in given)),
    )
    return replace(
        recipe,
        views={**recipe.views, **{name: ViewSettings(text=name, optional=True) for name in given}},
        terms=tuple(labelled if each is term else each for each in recipe.terms),
        corpus=replace(recipe.corpus, parts={**recipe.corpus.parts, **parts}),
    )


def join_labels(rows: Corpus, labels: Labels, out: Path, columns: Collection[str]) -> Corpus:
    """Write the rows of a corpus and, behind them, those of the labels.

    Args:
        rows: Rows with a column `text`.
        labels: The labels.
        out: The Parquet file to write.
        columns: Columns of the rows to keep, beside `text`.
    """
    kept = ["text", *(name for name in rows.columns if name in columns and name not in ("text", *COLUMNS))]
    table = [(*row, None, None, None, None) for row in rows.rows(kept)]
    table += [(text, *[None] * (len(kept) - 1), *others) for text, *others in labels.rows]
    names = [*kept, *COLUMNS]
    write_texts(out, dict(zip(names, zip(*table, strict=True), strict=True)))
    return Corpus(out, rows.name)


def labels_note(labels: Labels, cells: Iterable[Sequence[str | None]]) -> str:
    """Return how many of the training rows are labels.

    Args:
        labels: The labels.
        cells: The columns of the labels (`Labels.columns`) in each training row.
    """
    labelled = [any(row) for row in cells]
    share = f"{sum(labelled):,} of {len(labelled):,} training rows ({sum(labelled) / len(labelled):.1%})"
    return f"Labels: {labels.describe()}, in {share}."
