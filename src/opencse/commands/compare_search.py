"""`opencse.compare_search`: which searches change when a model is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from opencse.commands.comparison.search_page import write_search_comparison
from opencse.commands.comparison.top_hits import SearchComparison, compare_searches
from opencse.commands.reports.templates import output_folder
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.given import model_source
from opencse.encoder.loading import load_encoder
from opencse.evaluation.probes.probe_models import short_names
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import check_seed
from opencse.text.user_text import collect_passages, collect_queries

_SENTENCES = 100  # used as queries if none are given


def compare_search(
    old: Any,
    new: Any,
    texts: Any,
    *,
    queries: Any = None,
    out: str | Path | None = None,
    column: str | None = None,
    words: int = 200,
    documents: int = 5000,
    precision: Precision = "auto",
    seed: int = 0,
) -> SearchComparison:
    """Search the same texts with two models, and compare the lists of hits.

    Args:
        old: The model in use: a folder, a hub id, a bundled name or a `SentenceTransformer`.
        new: The model that may replace it.
        texts: As for `check`.
        queries: As for `check`; by default sentences of the texts.
        out: Folder for `search.html`, a page to judge the lists, and `search.json`; nothing is written by default.
        column: As for `check`.
        words: As for `check`.
        documents: Maximum number of texts searched; more are sampled at random.
        precision: As for `check`.
        seed: Seed of all sampling.

    Returns:
        Overlap of the lists, whether stored vectors stay usable, and the lists; it displays itself in a notebook.

    Raises:
        OpencseError: A file cannot be read, or there is no such model.
    """
    check_seed(seed)
    if documents < 1:
        raise OpencseError(f"{documents} documents are too few to search", "Give at least 1, or leave it out.")
    if out is not None:
        output_folder(out)
    found = collect_passages(texts, column=column, words=words)
    rng = np.random.default_rng(seed)
    chosen = sorted(rng.permutation(len(found))[:documents].tolist())
    searched = [found[i] for i in chosen]
    if queries is not None:
        asked = collect_queries(queries)
    else:
        sentences = list(dict.fromkeys(text for passage in searched for text in passage.sentences))
        asked = [sentences[i] for i in sorted(rng.permutation(len(sentences))[:_SENTENCES].tolist())]
    sources = [model_source(old), model_source(new)]
    encoders = [Embedder(load_encoder(source), precision=precision, progress="encoding") for source in sources]
    labels = short_names(sources)
    result = compare_searches(
        encoders[0],
        encoders[1],
        [passage.text for passage in searched],
        asked,
        names=(labels[0], labels[1]),
        own_queries=queries is not None,
    )
    if out is not None:
        write_search_comparison(result, out)
    return result
