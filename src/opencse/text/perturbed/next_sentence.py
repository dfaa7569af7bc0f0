"""The next sentence of the corpus (DiffCSE, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, with_error_rate
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore


@dataclass(frozen=True, kw_only=True)
class NextSentence(ConstructorSpec):
    """Take the next sentence of the corpus, which must list its sentences in document order.

    The last sentence of the corpus gives null; the last sentence of a document gets the first one of the next document.

    Example:
        [build.next]
        kind = "next_sentence"
    """

    kind: ClassVar[str] = "next_sentence"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    def prepare(self, corpus: CorpusAccess) -> NextSentenceReader:
        """Return the constructor, with the sentences of the whole corpus."""
        return NextSentenceReader(corpus.sentences)


class NextSentenceReader:
    """A prepared and opened `NextSentence`; pickling sends a path.

    Args:
        sentences: The sentences of the corpus, by number.
    """

    digest = ""

    def __init__(self, sentences: SentenceStore) -> None:
        self._sentences = sentences

    def open(self, *, seed: int = 0, workers: int = 1) -> NextSentenceReader:
        """Return the constructor; there is nothing to load."""
        return self

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Return the next sentence of each row."""
        count = len(self._sentences)
        results = [
            (self._sentences.range(row.id + 1, row.id + 2)[0], f"row {row.id + 1}")
            if row.id + 1 < count
            else (None, "last row")
            for row in rows
        ]
        return with_error_rate(rows, results)
