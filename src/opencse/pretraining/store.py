"""Token ids of the sentences of one or more corpora on disk, split into training and held-out sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opencse.data.token_store import TokenSource, TokenStore, open_token_store
from opencse.errors import OpencseError
from opencse.io.corpus import Corpus, content_hash, read_rows

_CHUNK = 50_000


def is_held_out_sentence(text: str, share: float) -> bool:
    """Return whether a sentence is held out, decided by a hash of its words so that duplicates stay together."""
    digest = hashlib.blake2b(" ".join(text.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def iter_sentences(corpora: Sequence[str | Path], share: float, held_out: bool) -> Iterator[str]:
    """Yield the held-out sentences of the corpora, or all others, in order."""
    for corpus in corpora:
        for (text,) in read_rows(corpus, ("text",)):
            if text is not None and is_held_out_sentence(text, share) == held_out:
                yield text


class SentenceIds(Sequence[np.ndarray]):
    """Token ids of chosen rows of several token stores, without special tokens.

    Args:
        stores: One per corpus.
        rows: For each store, the chosen rows.
    """

    def __init__(self, stores: Sequence[TokenStore], rows: Sequence[np.ndarray]) -> None:
        self._stores, self._rows = stores, np.concatenate(rows)
        self._store_of = np.repeat(np.arange(len(stores)), [len(r) for r in rows])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        ids = self._stores[self._store_of[index]].ids(0, int(self._rows[index]))
        assert ids is not None  # rows without text are not in the store
        return ids

    def chunks(self, limit: int | None = None) -> Iterator[list[np.ndarray]]:
        """Yield the sentences, at most `limit`, in lists that fit into memory."""
        stop = len(self) if limit is None else min(limit, len(self))
        for start in range(0, stop, _CHUNK):
            yield [self[i] for i in range(start, min(start + _CHUNK, stop))]


def open_sentence_ids(
    corpora: Sequence[str | Path], tokenizer: Any, max_length: int, share: float, *, progress: bool = True
) -> tuple[SentenceIds, SentenceIds, str]:
    """Tokenise corpora, unless their tokens are cached.

    Args:
        corpora: Files or folders in any format of `opencse.io.corpus`, each with a column `text`.
        tokenizer: A fast tokenizer.
        max_length: Maximum number of token ids of a sentence.
        share: Share of the sentences held out.
        progress: Show a progress bar while tokenising.

    Returns:
        The training sentences, the held-out ones, and a hash of all corpora's contents.

    Raises:
        OpencseError: A corpus cannot be read, or no sentence is left for training.
    """
    stores = [
        open_token_store(Corpus(c), [TokenSource("text")], tokenizer, max_length, progress=progress) for c in corpora
    ]
    flags = [
        np.array([is_held_out_sentence(t, share) for (t,) in read_rows(c, ("text",)) if t is not None], dtype=bool)
        for c in corpora
    ]
    train = SentenceIds(stores, [np.flatnonzero(~f) for f in flags])
    held_out = SentenceIds(stores, [np.flatnonzero(f) for f in flags])
    if len(train) < 2:
        raise OpencseError(
            f"{corpora[0]}: {len(train)} sentences are left for training", "Hold out fewer: --set text.held_out=0"
        )
    joined = hashlib.blake2b("".join(content_hash(c) for c in corpora).encode(), digest_size=16)
    return train, held_out, joined.hexdigest()
