"""`opencse.check`: does a model take the contrary for the same, on a user's own texts?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opencse.data.documents import Passage
from opencse.data.given import passages
from opencse.data.given import queries as read_queries
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.given import model_source
from opencse.encoder.loading import load_encoder
from opencse.probing.material import short_names
from opencse.probing.own_texts import check_texts
from opencse.probing.text_check import TextCheck
from opencse.reports.check_page import write_check

_TIMED = 24  # passages whose encoding is timed
_VERSIONS = 8  # short texts per rewritten sentence: itself, its contraries and rewordings


def check(
    model: Any,
    texts: Any,
    *,
    queries: Any = None,
    out: str | Path | None = None,
    column: str | None = None,
    words: int = 200,
    minutes: float = 2.0,
    pooling: str | None = None,
    precision: Precision = "auto",
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> TextCheck:
    """Measure how often a model takes the contrary for the same, on texts of one's own.

    Contraries and rewordings of the sentences are made by English grammar, and ranked among the texts.

    Args:
        model: A folder, a hub id, a bundled name or a `SentenceTransformer`.
        texts: Documents or sentences: a path (Markdown, HTML, plain text, CSV, JSONL, Parquet, or a folder of these),
            a list of strings, a pandas DataFrame or a `datasets.Dataset`.
        queries: Searches that users make: a file with one per line or a column `query`, or a list.
        out: A folder for `check.html` and `check.json`; none are written by default.
        column: The column of tables that holds the text; by default the likeliest by its name.
        words: Words of a passage at most, as an index would store it.
        minutes: Time to take, on this machine; fewer texts are used where it would take longer.
        pooling: For an encoder without pooling of its own.
        precision: See `opencse.encoder.embedder.Embedder`.
        seed: Of all that is drawn.
        notify: Receives short notes for the user.

    Returns:
        A result that prints its finding, and shows examples and a table in a notebook.

    Raises:
        OpencseError: A file cannot be read, there is no such model, or no sentence could be turned into its contrary.

    Example:
        >>> import opencse
        >>> opencse.check("minilm", ["Refunds are allowed.", "Members can edit pages."])  # doctest: +SKIP
    """
    started = time.perf_counter()
    found = passages(texts, column=column, words=words)
    asked = read_queries(queries) if queries is not None else []
    source = model_source(model)
    embedder = Embedder(load_encoder(source, pooling=pooling or "backbone"), precision=precision, progress="encoding")
    documents, limit = _sizes(embedder, found, 60 * minutes, seed)
    if documents < len(found):
        notify(f"{documents:,} of {len(found):,} texts are searched, to keep within {minutes:g} minutes")
    result = check_texts(
        embedder,
        found,
        model=short_names([source])[0] if os.path.exists(source) else source,
        queries=asked,
        limit=limit,
        documents=documents,
        deadline=started + 0.45 * 60 * minutes,
        seed=seed,
        notify=notify,
    )
    if out is not None:
        write_check(result, out)
    return result


def _sizes(embedder: Embedder, found: Sequence[Passage], budget: float, seed: int) -> tuple[int, int]:
    """How many passages are searched and how many sentences are rewritten, by the time that encoding takes here."""
    chosen = np.random.default_rng(seed).permutation(len(found))[:_TIMED].tolist()
    sample = [found[i].text for i in chosen]
    embedder(sample[:2])  # the first call takes longer
    before = time.perf_counter()
    embedder(sample)
    seconds = (time.perf_counter() - before) / len(sample)
    per_sentence = seconds * len(sample) / max(1, sum(len(found[i].sentences) for i in chosen))
    several = any(len(found[i].sentences) > 1 for i in chosen)
    documents = int(0.25 * budget / max(seconds, 1e-6))
    limit = int(0.25 * budget / max(_VERSIONS * per_sentence + 3 * seconds * several, 1e-6))
    return max(50, min(documents, 5000)), max(30, min(limit, 400))
