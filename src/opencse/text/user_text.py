"""Text in any form, opened as a corpus with a column `text` and one sentence per row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opencse.foundation.cache import cache_place, key_hash
from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced
from opencse.foundation.numbers import normalised
from opencse.foundation.progress import Phase, note, note_once
from opencse.foundation.read_once import ReadOnce
from opencse.foundation.reading import file_extension, translate_errors
from opencse.text.corpus import (
    Corpus,
    Row,
    query_column,
    text_column,
)
from opencse.text.document_readers import READERS
from opencse.text.documents import DocumentPassage, Documents, are_sentences, count_words
from opencse.text.memory_tables import data_file, data_name, is_table, strings_of

_QUERIES = 200
_VERSION = 7
# Rows that are written at a time.
_CHUNK = 8192
# Shorter sentences of a document, in words, are headings.
_LEAST = 3


class UserText:
    """A user's text, which opens as a corpus with a column `text` and one sentence per row.

    Args:
        given: The path of a corpus or of documents (`opencse.text.documents`), `"demo"`, a list of
            strings or of dicts, a data frame of pandas or polars, an Arrow table, a data set of the
            library datasets or the folder that its `save_to_disk` wrote, or `hub:owner/name`.
        column: The column that holds the text; by default the likeliest by its name.

    Attributes:
        columns: Columns of the text: those of a table, or `text`.
    """

    def __init__(self, given: Any, column: str | None = None) -> None:
        self._name = data_name(given)
        self._documents = Documents(data_file(given))
        self._column = column
        self.columns: tuple[str, ...] = ("text",)
        # It is one or the other.
        self._sentences: _SplitDocuments | None = None
        self._table: Corpus | None = None
        if self._documents.are_prose:
            self._sentences = _SplitDocuments(self._documents, column, self._name)
        else:
            self._table = Corpus(self._documents.path, self._name)
            self.columns = tuple(self._table.columns)

    def corpus(
        self,
        needed: Collection[str] = frozenset(),
        *,
        split: bool = True,
        stored: bool = True,
    ) -> Corpus:
        """Return the corpus.

        A file of this form is opened as it is. Everything else is converted and kept in the cache:
        documents, plain text and tables are split into sentences unless nine of ten lines or cells
        are one sentence each, another column is renamed to `text`, repeated sentences are dropped,
        and texts in memory are written to a file.

        Args:
            needed: A table with one of these columns is not split.
            split: Split the rows of a table into sentences if some are paragraphs; the other
                columns are lost.
            stored: Keep the sentences of documents in the cache; without it they are read again at
                each pass but the first, which is enough for a corpus that is only sampled.

        Raises:
            OpencseError: The text cannot be read, is empty or one sentence only, or is in an
                unknown column.
        """
        if self._sentences is not None:
            return self._sentences.stored() if stored else self._sentences
        corpus = self._table
        assert corpus is not None
        wanted = text_column(corpus.columns, corpus.path, self._column)
        if self._column is None and wanted != "text":
            reason = "the only one" if len(corpus.columns) == 1 else "the likeliest by its name"
            note_once(
                f"{corpus.name}: the texts are in the column {wanted!r}, {reason} "
                "(--column names another)"
            )
        if any(name.endswith(".rule") for name in corpus.columns):
            # `build_views` wrote this: one sentence per row, with its views.
            return corpus
        if split:
            columns = set(needed) & set(corpus.columns)
        else:
            columns = {name for name in corpus.columns if _is_text(corpus, name)}
        # A sample tells whether cells are sentences; a table may have millions.
        first = list(islice(corpus.texts(wanted), 1000))
        if first and not any(_has_letter(text) for text in first):
            raise OpencseError(
                f"{corpus.name}: no cell of the column {wanted!r} has a letter",
                "Choose another with --column.",
            )
        if split and not columns and not are_sentences(first):
            sentences = _SplitDocuments(self._documents, wanted, self._name)
            return sentences.stored() if stored else sentences
        others = sorted(columns - {"text", wanted})
        return _distinct(corpus, [wanted, *others])

    def first_texts(self, count: int) -> list[str]:
        """Return the first `count` passages or cells."""
        if self._table is not None:
            column = text_column(self.columns, self._table.path, self._column)
            return self._table.first_texts(count, column)
        return [passage.text for passage in self.first_passages(count)]

    def first_passages(self, count: int) -> list[DocumentPassage]:
        """Return the first passages of documents, none of a table or a list of sentences."""
        if self._sentences is None:
            return []
        return list(islice(self._sentences.passages, count))


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)


def collect_passages(
    given: Any, *, column: str | None = None, words: int = 200
) -> list[DocumentPassage]:
    """Return a user's text as the passages that a search index would store.

    Args:
        given: As for `UserText`.
        column: As for `UserText`.
        words: Maximum number of words in a passage.

    Raises:
        OpencseError: The text cannot be read, is empty, or is in an unknown column.
    """
    passages = list(Documents(data_file(given)).passages(column=column, words=words))
    if not passages:
        raise OpencseError(
            f"{data_name(given)}: no text", "Give documents with at least one sentence."
        )
    return passages


def collect_queries(given: Any) -> list[str]:
    """Return at most 200 distinct queries, evenly spaced over all.

    Args:
        given: A list of queries, a table in memory, or a file: one per line, a column `query`, `queries`, `question`
            or `search`, or a document, each sentence of which is a query.

    Raises:
        OpencseError: The file cannot be read, or there is no query.
    """
    texts: Iterable[str]
    if isinstance(given, str | Path) or is_table(given):
        documents = Documents(data_file(given))
        if documents.path.is_file() and file_extension(documents.path) in READERS:
            texts = [text for passage in documents.passages() for text in passage.sentences]
        else:
            file = Corpus(documents.path)
            texts = file.texts(query_column(file.columns, file.path))
    else:
        texts = strings_of(given)
    queries = dict.fromkeys(text.strip() for text in texts if text.strip())
    if not queries:
        raise OpencseError(f"{given} has no query", "Give at least one.")
    listed = list(queries)
    if len(listed) <= _QUERIES:
        return listed
    return [listed[i * len(listed) // _QUERIES] for i in range(_QUERIES)]


class _SplitDocuments(Corpus):
    """The distinct sentences of documents, without headings of one or two words.

    Nothing is stored: each complete pass reads and splits the documents, but looks at the beginning
    cost no reading of their own. `stored` writes the sentences to the cache, for whoever needs
    several passes.

    Attributes:
        passages: The passages of the documents.
    """

    def __init__(self, documents: Documents, column: str | None, name: str) -> None:
        # Without the constructor of the base class, which opens a table.
        self.path = documents.path
        self.name = name
        self.columns = ("text",)
        self.format = "documents"
        self.passages = ReadOnce(partial(documents.passages, column=column))
        self._documents = documents
        self._column = column
        self._told = False

    @property
    def content_hash(self) -> str:
        """Hash of the documents and of how they are split."""
        return key_hash([_VERSION, *self._key()])

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the sentences in order, each as a row for every time that `text` is named."""
        seen: set[str] = set()
        for passage in self.passages:
            for text in passage.sentences:
                if text not in seen and count_words(text) >= _LEAST:
                    seen.add(text)
                    yield (text,) * len(columns)
        if not seen:
            raise no_sentence(self.path)
        self._tell(len(seen))

    def stored(self) -> Corpus:
        """Return the sentences as a table in the cache."""
        rows = partial(self.rows, ("text",))
        path = _written("sentences", self._key(), ("text",), rows, self.path)
        self._tell(pq.read_metadata(path).num_rows)
        return Corpus(path, self.name)

    def _tell(self, count: int) -> None:
        """Note the number of sentences, once for all passes."""
        if not self._told:
            note(f"{self.name}: split into {count:,} distinct sentences")
        self._told = True

    def _key(self) -> list[str]:
        return [self._documents.content_hash, self._column or ""]


def no_sentence(source: Path) -> OpencseError:
    """Return the error for a text without a sentence."""
    return OpencseError(f"{source} has no sentence", "Give documents with at least one sentence.")


def _distinct(corpus: Corpus, keys: Sequence[str]) -> Corpus:
    """Return a table with its texts in the column `text` and without repeated rows.

    It is written to the cache unless it already has this form.

    Args:
        corpus: The table.
        keys: The columns by which rows are compared, the first of them that of the text.
    """
    others: list[str] = []
    # If the text is a field within a field, it gives more rows than the table has.
    if keys[0] in corpus.columns:
        for name in corpus.columns:
            if name not in ("text", *keys) and _is_text(corpus, name):
                others.append(name)
    # One pass over hashes; the texts themselves are read a second time, and only if some go.
    first, count = _first_occurrences(corpus, keys)
    texts = len(first)
    if count == texts and keys[0] == "text":
        return corpus
    if count < texts:
        note(
            f"{corpus.name}: {texts - count:,} of {texts:,} sentences repeat another "
            "and are left out"
        )
        if count == 1:
            raise OpencseError(
                f"{corpus.name} holds one sentence, {texts:,} times",
                "Give different sentences.",
            )

    def rows() -> Iterator[Row]:
        kept = iter(first)
        for row in corpus.rows((*keys, *others)):
            if row[0] is not None and next(kept):
                yield row

    names = ("text", *keys[1:], *others)
    key = [corpus.content_hash, *keys]
    return Corpus(_written("distinct", key, names, rows, corpus.path), corpus.name)


def _first_occurrences(corpus: Corpus, keys: Sequence[str]) -> tuple[np.ndarray, int]:
    """Return for each row with a text whether it is the first of equal ones, bool (rows,), and how many are.

    Only hashes are held in memory, 8 bytes per row, whatever the length of the texts.
    """
    hashes = np.fromiter(
        (
            hash(tuple(None if cell is None else normalised(cell) for cell in row))
            for row in corpus.rows(keys)
            if row[0] is not None
        ),
        np.int64,
    )
    _, places = np.unique(hashes, return_index=True)
    first = np.zeros(len(hashes), dtype=bool)
    first[places] = True
    return first, len(places)


def _is_text(corpus: Corpus, column: str) -> bool:
    try:
        # Reading raises an error at the first cell that holds no text.
        for _ in islice(corpus.rows((column,)), 100):
            pass
        return True
    except OpencseError:
        return False


def _written(
    how: str,
    key: Sequence[str],
    names: Sequence[str],
    rows: Callable[[], Iterable[Row]],
    source: Path,
) -> Path:
    """Write rows to a table in the cache, a few thousand at a time, unless it is there already.

    Args:
        how: How the rows are made.
        key: What else they depend on.
        names: The columns.
        rows: Yields the rows.
        source: Where they come from.

    Raises:
        OpencseError: There is no row, or a text cannot be written.
    """
    out = cache_place("inputs", f"{source.stem[:40]}-{key_hash([_VERSION, how, *key])}.parquet")
    if out.is_file():
        return out
    schema = pa.schema([(name, pa.string()) for name in names])
    failed = translate_errors(source, "cannot be written as text", "Check its characters.")
    written = False
    phase = Phase("reading", unit="sentences")
    with failed, phase, replaced(out) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for chunk in chunks(rows(), _CHUNK):
            columns = [pa.array(cells, pa.string()) for cells in zip(*chunk, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
            phase.update(len(chunk))
            written = True
        if not written:
            raise no_sentence(source)
    return out
