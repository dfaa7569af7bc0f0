"""The token store: a corpus tokenised once, and read from disk by row.

Each source (a column, with its prompt) is a column of lists of token ids, memory-mapped, so that a
training step reads only its own rows. Building takes O(rows) time; the store takes 2 or 4 bytes per
token and 8 per row.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from opencse.foundation.cache import Store, Together, is_whole, key_hash, new_store, store_folder
from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase
from opencse.text.corpus import Corpus

_CHUNK = 4096
# Chunks of the corpus in a shard, which one process tokenises: 131,072 rows.
_SHARD = 32
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class TokenSource:
    """A text to tokenise: a column of the corpus, and the prompt around it; a column of the token store.

    Views that read the same text share one: SimCSE's two views are two `ViewTokens` of one source.

    Attributes:
        column: The text column.
        prompt: A plain prompt such as `"query: {}"`, or None.
        optional: Whether rows may lack it; rows that lack any other source are left out.
        window: Minimum and maximum match error rate with the column `text`; rows outside count as
            lacking it.
        final_mark: Use the tokenizer that adds the recipe's final mark, if it has one.
    """

    column: str
    prompt: str | None = None
    optional: bool = False
    window: tuple[float, float] | None = None
    final_mark: bool = True


@dataclass(frozen=True)
class UsableRows:
    """The rows of a corpus that its token store has, in the same order: each a mapping from columns to cells.

    Attributes:
        corpus: The corpus.
        sources: The columns to read; a row that lacks one which is not optional is left out.
    """

    corpus: Corpus
    sources: Sequence[TokenSource]

    def __iter__(self) -> Iterator[dict[str, str | None]]:
        return (row for row in self.with_gaps() if row is not None)

    def with_gaps(self) -> Iterator[dict[str, str | None] | None]:
        """Yield every row of the corpus, and None for one that is left out."""
        windows = {s.column: s.window for s in self.sources if s.window is not None}
        needed = [s.column for s in self.sources if not s.optional]
        columns = list(dict.fromkeys(s.column for s in self.sources))
        # A match error rate compares a cell with the sentence itself.
        if windows and "text" not in columns:
            columns.append("text")
        for chunk in chunks(self.corpus.rows(columns), _CHUNK):
            rows = [dict(zip(columns, cells, strict=True)) for cells in chunk]
            for column, window in windows.items():
                _keep_within(window, rows, column)
            for row in rows:
                if all(row[column] is not None for column in needed):
                    yield row
                else:
                    yield None


def _keep_within(
    window: tuple[float, float], rows: Sequence[dict[str, str | None]], column: str
) -> None:
    """Set to None the cells of a column whose match error rate with the row's `text` lies outside the window."""
    from opencse.text.surface import match_error_rate

    both = [row for row in rows if row["text"] is not None and row[column] is not None]
    rates = match_error_rate([str(row["text"]) for row in both], [str(row[column]) for row in both])
    for row, rate in zip(both, rates.tolist(), strict=True):
        if not window[0] <= rate <= window[1]:
            row[column] = None


class TokenStore:
    """Token ids of a corpus by source and row, without special tokens, memory-mapped.

    Args:
        store: A column of lists for each source.
        corpus_hash: Hash of the corpus.

    Attributes:
        rows: Number of usable rows.
        skipped: Number of rows that were left out because they lack a source.
    """

    def __init__(self, store: Store, corpus_hash: str) -> None:
        self.rows = len(store)
        self.corpus_hash = corpus_hash
        self.skipped: int = store.meta["skipped"]
        self._columns = [store.columns[str(i)] for i in range(store.meta["sources"])]

    def ids(self, source: int, row: int) -> np.ndarray | None:
        """Return the token ids of a row, (length,), read-only; None if it lacks this source."""
        ids, offsets, valid = self._columns[source]
        assert offsets is not None
        if valid is not None and not valid[row]:
            return None
        return ids[offsets[row] : offsets[row + 1]]

    def has(self, source: int, rows: np.ndarray) -> np.ndarray:
        """Return which of some rows have a source, bool (n,)."""
        valid = self._columns[source].valid
        if valid is None:
            return np.ones(len(rows), dtype=bool)
        return np.array(valid[rows])

    def tokens(self, source: int) -> int:
        """Return the number of token ids of all rows."""
        return len(self._columns[source].values)

    def count_long(self, source: int, length: int) -> int:
        """Return the number of rows with at least so many token ids."""
        offsets = self._columns[source].offsets
        assert offsets is not None
        count = 0
        # The lengths of a billion rows are 8 GB.
        for first in range(0, self.rows, _ROWS_AT_ONCE):
            lengths = np.diff(offsets[first : first + _ROWS_AT_ONCE + 1])
            count += int((lengths >= length).sum())
        return count

    def present(self, source: int) -> int:
        """Return the number of rows that have this source."""
        valid = self._columns[source].valid
        return self.rows if valid is None else int(valid.sum())


def open_token_store(
    corpus: Corpus,
    sources: Sequence[TokenSource],
    tokenizer: Any,
    max_length: int,
    *,
    unmarked: Any = None,
    allow_empty: bool = False,
    progress: bool = True,
    together: Together | None = None,
) -> TokenStore:
    """Open the token store of a corpus; build it first if it is not in the cache.

    Args:
        corpus: The corpus.
        sources: The columns to tokenise, with their prompts.
        tokenizer: A fast tokenizer; it is used without special tokens.
        max_length: Maximum number of token ids of a text; the rest is cut off.
        unmarked: The same tokenizer without a final mark, for the sources that have none.
        allow_empty: Accept a source that is null in every row.
        progress: Show progress while building.
        together: The processes that build the store together; all of them call this function. By
            default this process alone.

    Raises:
        OpencseError: The corpus cannot be read, lacks a column, or holds fewer than two usable
            rows.
    """
    columns = corpus.columns
    for source in sources:
        if source.column not in columns:
            raise OpencseError(
                f"{corpus.path}: the recipe needs the column '{source.column}', which the corpus does not have",
                f"It has: {', '.join(columns) or 'none'}. Build it with `opencse build`, or pass a table that has it.",
            )
    # Everything that the tokens depend on. A tokenizer carries the truncation and padding of its last
    # call, which are no part of it.
    definition = json.loads(tokenizer.backend_tokenizer.to_str())
    key = {
        "corpus": corpus.content_hash,
        "format": corpus.format,
        "tokenizer": key_hash(definition | {"truncation": None, "padding": None}),
        "sources": [(s.column, s.prompt, s.optional, s.window) for s in sources],
        "max_length": max_length,
        "side": tokenizer.truncation_side,
    }
    tokenizers = [tokenizer if source.final_mark else unmarked for source in sources]
    if not all(source.final_mark for source in sources):
        key["unmarked"] = [i for i, source in enumerate(sources) if not source.final_mark]
    folder = store_folder("tokens", key)
    # Two bytes hold the ids of most vocabularies.
    number_type = np.uint16 if len(tokenizer) <= 1 << 16 else np.int32
    builder = _StoreBuilder(corpus, sources, tokenizers, max_length, key, number_type, progress)
    builder.build(folder, together or Together())
    store = TokenStore(Store(folder), corpus.content_hash)
    if store.rows < 2:
        raise OpencseError(
            f"{corpus.path}: holds {store.rows} usable sentences ({store.skipped} blank rows)",
            "Contrastive training needs at least 2, and thousands to learn anything.",
        )
    for i, source in enumerate(sources):
        if store.present(i) or allow_empty:
            continue
        problem = f"{corpus.path}: the column '{source.column}' is null in every row"
        if source.window is not None:
            problem += f", or beyond the match error rates {source.window}"
        raise OpencseError(problem, "Build it again.")
    return store


@dataclass(frozen=True)
class _StoreBuilder:
    """The building of a token store, in shards of rows.

    Every process reads the corpus and tokenises every `count`-th shard, which is the slow part.
    Shards are entries of the cache, so a run that was killed continues with the missing ones. The
    first process then copies all of them into the store, whose bytes do not depend on the number of
    processes.
    """

    corpus: Corpus
    sources: Sequence[TokenSource]
    tokenizers: Sequence[Any]
    max_length: int
    key: Mapping[str, Any]
    number_type: type
    progress: bool

    def build(self, folder: Path, together: Together) -> None:
        """Build the store unless it exists; every process must call this."""
        shards = []
        if not is_whole(folder):
            shards = self._tokenise_shards(together)
        together.wait()
        if together.rank == 0 and not is_whole(folder):
            # Another run may have finished the store while the other processes looked for it.
            if not shards or not all(map(is_whole, shards)):
                shards = self._tokenise_shards(Together())
            self._join(folder, shards)
        together.wait()
        if together.rank == 0:
            for shard in shards:
                shutil.rmtree(shard, ignore_errors=True)

    def _tokenise_shards(self, together: Together) -> list[Path]:
        """Tokenise the missing shards of this process; return the folders of the shards of all."""
        shards = []
        rows = UsableRows(self.corpus, self.sources).with_gaps()
        numbered = enumerate(chunks(rows, _CHUNK))
        with Phase("tokenising", unit="sentences", show=self.progress) as phase:
            for number, group in groupby(numbered, key=lambda pair: pair[0] // _SHARD):
                shard = store_folder("tokens", {**self.key, "shard": number, "chunks": _SHARD})
                shards.append(shard)
                parts = (chunk for _, chunk in group)
                own = number % together.count == together.rank
                if own and not is_whole(shard):
                    self._write_shard(shard, parts, phase)
                else:
                    for chunk in parts:
                        phase.update(len(chunk))
        return shards

    def _write_shard(
        self, folder: Path, parts: Iterable[list[dict[str, str | None] | None]], phase: Phase
    ) -> None:
        with new_store(folder, self._columns()) as writer:
            writer.meta |= {"skipped": 0, "sources": len(self.sources)}
            for chunk in parts:
                usable = [row for row in chunk if row is not None]
                columns = []
                for source, tokenizer in zip(self.sources, self.tokenizers, strict=True):
                    columns.append(_tokenise(usable, source, tokenizer, self.max_length))
                writer.add(*columns)
                writer.meta["skipped"] += len(chunk) - len(usable)
                phase.update(len(chunk))

    def _join(self, folder: Path, shards: Sequence[Path]) -> None:
        """Write the store from its shards."""
        with new_store(folder, self._columns()) as writer:
            writer.meta |= {"skipped": 0, "sources": len(self.sources)}
            for shard in shards:
                part = Store(shard)
                writer.append(part)
                writer.meta["skipped"] += part.meta["skipped"]

    def _columns(self) -> dict[str, type]:
        return {str(number): self.number_type for number in range(len(self.sources))}


def _tokenise(
    rows: Sequence[Mapping[str, str | None]], source: TokenSource, tokenizer: Any, max_length: int
) -> list[list[int] | None]:
    """Return the ids of each row, None for a row without text."""
    texts = [row[source.column] for row in rows]
    # A prompt is tokenised together with its text: cut apart, a word next to it may become other
    # tokens.
    prompt = source.prompt or "{}"
    wrapped = [prompt.replace("{}", text) for text in texts if text is not None]
    if not wrapped:
        return [None] * len(texts)
    encoded = tokenizer(
        wrapped,
        add_special_tokens=False,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=False,
        truncation=True,
    )
    ids = iter(encoded["input_ids"])
    return [None if text is None else next(ids) for text in texts]
