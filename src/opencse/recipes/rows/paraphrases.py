"""The user's source of paraphrases: a table of sentences and paraphrases, or a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import regular_file
from opencse.text.corpus import Corpus

SENTENCE_COLUMNS = ("text", "sentence")
PARAPHRASE_COLUMNS = ("paraphrase", "back_translation", "candidate")


@dataclass(frozen=True, kw_only=True)
class Paraphrases:
    """The user's source of paraphrases: a table, a language model, or none.

    Attributes:
        table: A table of sentences and paraphrases, whose sentences are added to the corpus.
        llm: An OpenAI-compatible endpoint and the name of a model there, `URL#MODEL`.

    Raises:
        OpencseError: Both are given.
    """

    table: Path | None = None
    llm: str | None = None

    def __post_init__(self) -> None:
        if self.table is not None and self.llm is not None:
            raise OpencseError(
                "paraphrases come from a table or from a language model, not from both", "Give one of them."
            )

    def settings(self, layer: Mapping[str, Any]) -> list[str]:
        """Return the overrides with which a recipe's `[with.paraphrases]` reads this source; empty without a source.

        Raises:
            OpencseError: The table has no such columns, or the endpoint names no model.
        """
        place = next((place for place, _ in tables_of_kind(layer, "candidate_table")), "build.paraphrase")
        if self.table is not None:
            text, paraphrase = paraphrase_columns(self.table)
            source = {"path": str(self.table), "text_column": text, "candidate_column": paraphrase}
            return [f"{place}.{key}={value}" for key, value in source.items()]
        return [] if self.llm is None else llm_settings(self.llm, "paraphrase", place)


def llm_settings(llm: str, task: str, place: str) -> list[str]:
    """Return the overrides with which a language model (`URL#MODEL`) does a task of the constructor `llm`, at a place.

    Raises:
        OpencseError: The endpoint names no model.
    """
    url, _, model = llm.partition("#")
    if not model:
        raise OpencseError(f"{llm}: the name of the model is missing", "Write it like http://localhost:8000/v1#NAME.")
    source = {"kind": "llm", "url": url, "model": model, "task": task}
    return [f"{place}.{key}={value}" for key, value in source.items()]


def tables_of_kind(table: Mapping[str, Any], kind: str, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the constructors of a kind below a recipe's table, each with its dotted key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            if value.get("kind") == kind:
                yield f"{place}{key}", value
            yield from tables_of_kind(value, kind, f"{place}{key}.")


def paraphrase_columns(table: str | Path) -> tuple[str, str]:
    """Return the columns of a table that hold sentences and their paraphrases.

    Raises:
        OpencseError: There is no such file, or it has no columns with known names.
    """
    present = Corpus(regular_file(table)).columns  # a corpus may be a folder, this table may not
    columns = [
        next((name for name in names if name in present), None) for names in (SENTENCE_COLUMNS, PARAPHRASE_COLUMNS)
    ]
    if columns[0] is None or columns[1] is None:
        raise OpencseError(
            f"{table} is not a table of paraphrases: its columns are {', '.join(present)}",
            f"Name one {' or '.join(SENTENCE_COLUMNS)}, and one {' or '.join(PARAPHRASE_COLUMNS)}.",
        )
    return columns[0], columns[1]
