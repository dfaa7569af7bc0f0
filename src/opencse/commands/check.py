"""`opencse.check`: does a model follow wording or meaning on a user's own texts?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opencse.commands.reports.check_page import write_check
from opencse.commands.reports.templates import output_folder
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.given import model_source
from opencse.encoder.loading import load_encoder
from opencse.evaluation.check.own_texts import check_texts
from opencse.evaluation.check.text_check import TextCheck
from opencse.evaluation.probes.probe_models import short_names
from opencse.foundation.numbers import check_minutes, check_seed
from opencse.text.documents import DocumentPassage
from opencse.text.languages import AUTO
from opencse.text.user_text import collect_passages, collect_queries

_TIMED = 24  # passages whose encoding is timed
_VERSIONS = 8  # short texts per rewritten sentence: itself, its contradictions and rewordings


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
    language: str = AUTO,
    syntax: str = "",
    notify: Callable[[str], None] = lambda _: None,
) -> TextCheck:
    """Measure how often a model ranks a contradiction above a rewording, on your own texts.

    Rules of grammar make contradictions and rewordings of the sentences, which are ranked among the texts.

    Args:
        model: A folder, a hub id, a bundled name or a `SentenceTransformer`.
        texts: Documents or sentences: a path (Markdown, HTML, plain text, CSV, JSONL, Parquet, or a folder of these),
            a list of strings, a pandas DataFrame or a `datasets.Dataset`.
        queries: Searches that users make: a file with one per line or a column `query`, or a list.
        out: Folder for `check.html` and `check.json`; nothing is written by default.
        column: The column of tables that holds the text; by default the likeliest by its name.
        words: Maximum number of words in a passage, as in your index.
        minutes: Approximate time limit; fewer texts are used if all would take longer.
        pooling: Pooling of an encoder that defines none.
        precision: See `opencse.encoder.embedder.Embedder`.
        seed: Seed of all sampling.
        language: Code of the language whose rules rewrite the texts; `auto` for the one that they look like.
        syntax: A spaCy pipeline for this language, by name or folder; by default the one that its rules come with.
        notify: Receives short notes for the user.

    Returns:
        The result, which prints its headline and displays examples and a table in a notebook.

    Raises:
        OpencseError: A file cannot be read, there is no such model, or no sentence could be contradicted.

    Example:
        >>> import opencse
        >>> opencse.check("minilm", ["Refunds are allowed.", "Members can edit pages."])  # doctest: +SKIP
    """
    started = time.perf_counter()
    check_seed(seed)
    check_minutes(minutes)
    if out is not None:
        output_folder(out)
    found = collect_passages(texts, column=column, words=words)
    asked = collect_queries(queries) if queries is not None else []
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
        language=language,
        syntax=syntax,
        notify=notify,
    )
    if out is not None:
        write_check(result, out)
    return result


def _sizes(embedder: Embedder, found: Sequence[DocumentPassage], budget: float, seed: int) -> tuple[int, int]:
    """Return how many passages to search and how many sentences to rewrite, from the time that encoding takes."""
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
