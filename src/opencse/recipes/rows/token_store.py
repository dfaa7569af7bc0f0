"""The token store: a corpus tokenised once, and read from disk by row.

Each source (a column, with its prompt) is one array of token ids and one of lengths, in a cache folder whose name is a
hash of everything that they depend on. Ids are memory-mapped, so that a training step reads only its own rows. Building
takes O(rows) time and constant memory; the store takes 2 or 4 bytes per token and 4 per row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opencse.foundation.cache import sealed_store
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase
from opencse.text.corpus import Corpus, chunks

_VERSION = 1
_CHUNK = 4096


@dataclass(frozen=True)
class TokenSource:
    """A text to tokenise: a column of the corpus, and the prompt around it.

    Attributes:
        column: The text column.
        prompt: A plain prompt such as `"query: {}"`, or None.
        optional: Whether rows may lack it; rows that lack any other source are left out.
        window: Minimum and maximum match error rate with the column `text`; rows outside count as lacking it.
    """

    column: str
    prompt: str | None = None
    optional: bool = False
    window: tuple[float, float] | None = None


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
        columns = list(dict.fromkeys([*(s.column for s in self.sources), *(["text"] if windows else [])]))
        needed = [s.column for s in self.sources if not s.optional]
        for chunk in chunks(self.corpus.rows(columns), _CHUNK):
            rows = [dict(zip(columns, cells, strict=True)) for cells in chunk]
            for column, window in windows.items():
                _keep_within(window, rows, column)
            yield from (row if all(row[c] is not None for c in needed) else None for row in rows)


def _keep_within(window: tuple[float, float], rows: Sequence[dict[str, str | None]], column: str) -> None:
    """Set to None the cells of a column whose match error rate with the row's `text` lies outside the window."""
    from opencse.text.surface import match_error_rate

    both = [row for row in rows if row["text"] is not None and row[column] is not None]
    rates = match_error_rate([str(row["text"]) for row in both], [str(row[column]) for row in both], workers=1)
    for row, rate in zip(both, rates.tolist(), strict=True):
        if not window[0] <= rate <= window[1]:
            row[column] = None


class TokenStore:
    """Token ids of a corpus by source and row, without special tokens.

    Args:
        folder: A folder that `open_token_store` wrote.

    Attributes:
        rows: Number of usable rows.
        skipped: Number of rows that were left out because they lack a source.
        corpus_hash: Hash of the corpus.
    """

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.rows: int = meta["rows"]
        self.skipped: int = meta["skipped"]
        self.corpus_hash: str = meta["corpus_hash"]
        self._ids, self._lengths, self._offsets = [], [], []
        for i in range(meta["sources"]):
            lengths = np.fromfile(folder / f"{i}.lengths", dtype=np.int32)
            offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
            np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
            empty = offsets[-1] == 0  # an empty file cannot be mapped
            ids = np.zeros(0, meta["dtype"]) if empty else np.memmap(folder / f"{i}.ids", meta["dtype"], "r")
            self._lengths.append(lengths)
            self._offsets.append(offsets)
            self._ids.append(ids)

    def ids(self, source: int, row: int) -> np.ndarray | None:
        """Return the token ids of a row, shape (length,), read-only; None if the row lacks this source."""
        if self._lengths[source][row] < 0:
            return None
        start, end = self._offsets[source][row : row + 2]
        return self._ids[source][start:end]

    def present(self, source: int) -> int:
        """Return the number of rows that have this source."""
        return int((self._lengths[source] >= 0).sum())


def open_token_store(
    corpus: Corpus,
    sources: Sequence[TokenSource],
    tokenizer: Any,
    max_length: int,
    *,
    allow_empty: bool = False,
    progress: bool = True,
) -> TokenStore:
    """Open the token store of a corpus; build it first if it is not in the cache.

    Args:
        corpus: The corpus.
        sources: The columns to tokenise, with their prompts.
        tokenizer: A fast tokenizer; it is used without special tokens.
        max_length: Maximum number of token ids of a text; the rest is cut off.
        allow_empty: Accept a source that is null in every row.
        progress: Show progress while building.

    Raises:
        OpencseError: The corpus cannot be read, lacks a column, or holds fewer than two usable rows.
    """
    columns = corpus.columns
    for source in sources:
        if source.column not in columns:
            raise OpencseError(
                f"{corpus.path}: the recipe needs the column '{source.column}', which the corpus does not have",
                f"It has: {', '.join(columns) or 'none'}. Build it with `opencse build`, or pass a table that has it.",
            )
    key = {
        "version": _VERSION,
        "corpus": corpus.content_hash,
        "format": corpus.format,
        "tokenizer": _tokenizer_hash(tokenizer),
        "sources": [(s.column, s.prompt, s.optional, s.window) for s in sources],
        "max_length": max_length,
    }
    name = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=16).hexdigest()
    build = partial(_build, corpus, sources, tokenizer, max_length, progress)
    store = TokenStore(sealed_store("tokens", name, build))
    if store.rows < 2:
        raise OpencseError(
            f"{corpus.path}: holds {store.rows} usable sentences ({store.skipped} blank rows)",
            "Contrastive training needs at least 2, and thousands to learn anything.",
        )
    for i, source in enumerate(sources):
        if not store.present(i) and not allow_empty:
            raise OpencseError(f"{corpus.path}: the column '{source.column}' is null in every row", "Build it again.")
    return store


def _tokenizer_hash(tokenizer: Any) -> str:
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    spec.pop("truncation", None), spec.pop("padding", None)
    return hashlib.blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=16).hexdigest()


def _build(
    corpus: Corpus, sources: Sequence[TokenSource], tokenizer: Any, max_length: int, progress: bool, folder: Path
) -> None:
    dtype = "uint16" if len(tokenizer) <= 1 << 16 else "int32"
    rows = skipped = 0
    id_files = [(folder / f"{i}.ids").open("wb") for i in range(len(sources))]
    length_files = [(folder / f"{i}.lengths").open("wb") for i in range(len(sources))]
    phase = Phase("tokenising", unit="sentences", show=progress)
    try:
        for chunk in chunks(UsableRows(corpus, sources).with_gaps(), _CHUNK):
            kept = [record for record in chunk if record is not None]
            rows, skipped = rows + len(kept), skipped + len(chunk) - len(kept)
            for source, ids_file, lengths_file in zip(sources, id_files, length_files, strict=True):
                ids, lengths = _tokenise(kept, source, tokenizer, max_length)
                ids_file.write(ids.astype(dtype).tobytes())
                lengths_file.write(lengths.tobytes())
            phase.update(len(chunk))
    finally:
        phase.close()
        for file in (*id_files, *length_files):
            file.close()
    meta = {"rows": rows, "skipped": skipped, "sources": len(sources), "dtype": dtype}
    meta["corpus_hash"] = corpus.content_hash
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _tokenise(
    records: Sequence[Mapping[str, str | None]], source: TokenSource, tokenizer: Any, max_length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the concatenated ids of the records, and the number of ids of each (-1 for a record without text)."""
    texts = [r[source.column] for r in records]
    wrapped = [t if source.prompt is None else source.prompt.replace("{}", t) for t in texts if t is not None]
    found = iter(
        tokenizer(
            wrapped,
            add_special_tokens=False,
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        if wrapped
        else []
    )
    ids: list[int] = []
    lengths = np.full(len(texts), -1, dtype=np.int32)
    for i, text in enumerate(texts):
        if text is not None:
            tokens = next(found)
            lengths[i] = len(tokens)
            ids.extend(tokens)
    return np.asarray(ids, dtype=np.int64), lengths
