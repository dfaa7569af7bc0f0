"""`opencse.check`: does a model follow wording or meaning on a user's own texts?"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from opencse.commands.command_line import apply, takes
from opencse.commands.options import CheckOptions
from opencse.commands.reports.charts import chart, draw_rates
from opencse.commands.reports.page import output_folder, render_template, write_page
from opencse.debias.reranker import CACHING, reranker_of
from opencse.encoder.backbone import model_source
from opencse.encoder.embedder import Embedder, own_similarity
from opencse.encoder.loading import load_encoder
from opencse.evaluation.check.contradictions import CONTRADICTIONS, REWORDINGS, SentenceRewriter
from opencse.evaluation.check.own_texts import CacheScore, TextCheck, check_texts
from opencse.evaluation.probes.probe_suite import short_names
from opencse.foundation.figures import can_draw
from opencse.foundation.numbers import check_minutes
from opencse.foundation.progress import note
from opencse.foundation.result_table import show
from opencse.foundation.terminal import print_text
from opencse.text.documents import DocumentPassage, likely_language
from opencse.text.languages import choose_language
from opencse.text.user_text import collect_passages

# Passages whose encoding is timed.
_TIMED = 24
# Examples on the page ...
_EXAMPLES = 12
# ... and how many of them need no click.
_OPENED = 5
# Short texts of a rewritten sentence: itself, its contradictions and rewordings.
_VERSIONS = 8

# A minute's worth of work, on two cores with a small model.
# Passages that are searched.
_DOCUMENTS = 1000
# Sentences with both a contradiction and a rewording.
_CASES = 150
_PARSED = 2000


@takes(CheckOptions)
def check(options: CheckOptions) -> TextCheck:
    """Check a model on texts.

    Returns:
        The result, which prints its headline and displays examples and a table in a notebook.

    Raises:
        OpencseError: A file cannot be read, there is no such model, or no sentence could be
            contradicted.

    Example:
        >>> import opencse
        >>> opencse.check("minilm", ["Refunds are allowed.", "Members can edit pages."])  # doctest: +SKIP
    """
    check_minutes(options.minutes)
    if options.out is not None:
        output_folder(options.out)
    passages = collect_passages(options.texts, column=options.column, words=options.words)
    source = model_source(options.model)
    encoder = load_encoder(source)
    embedder = Embedder(encoder, precision="auto", progress="encoding")
    documents, limit, sentences = _sizes(passages, options.minutes)
    expected = _expected_minutes(embedder, passages, documents, limit)
    if expected > 1.5 * options.minutes:
        options.notify(
            f"this model is slow: about {expected:.0f} minutes for the sentences of {options.minutes:g}"
        )
    if documents < len(passages):
        options.notify(
            f"{documents:,} of {len(passages):,} texts are searched, to keep within {options.minutes:g} minutes"
        )
    language = choose_language(
        options.language, likely_language(passage.text for passage in passages[:500])
    )
    options.notify(language.line(CONTRADICTIONS | REWORDINGS))
    rewriter = SentenceRewriter(language=language)
    measured = check_encoder(
        encoder,
        embedder,
        passages,
        rewriter,
        limit=limit,
        documents=documents,
        sentences=sentences,
    )
    result = replace(measured, model=short_names([source])[0] if os.path.exists(source) else source)
    if options.out is not None:
        write_page(options.out, "check", render_check(result), asdict(result))
    return result


def check_encoder(
    encoder: SentenceTransformer,
    embedder: Embedder,
    passages: Sequence[DocumentPassage],
    rewriter: SentenceRewriter,
    *,
    limit: int,
    documents: int,
    sentences: int,
) -> TextCheck:
    """Check a loaded model with its own similarity, and with agreement if it has a meaning block.

    Args:
        encoder: The model.
        embedder: Encodes with it.
        passages: The texts.
        rewriter: Contradicts and rewords their sentences.
        limit: As for `check_texts`, like the others.
        documents: Maximum number of passages searched.
        sentences: Maximum number of sentences that are parsed.
    """
    return check_texts(
        embedder,
        passages,
        rewriter,
        limit=limit,
        documents=documents,
        sentences=sentences,
        similarity=own_similarity(encoder),
        cache_score=_cache_score(encoder),
    )


def _cache_score(encoder: SentenceTransformer) -> CacheScore | None:
    """Return the score with agreement of a model with a meaning block; None without one."""
    reranker = reranker_of(encoder)
    if reranker is None:
        return None

    def score(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        pairs = list(zip(first, second, strict=True))
        return reranker.predict(pairs, penalty=CACHING)

    return score


def command(options: CheckOptions) -> None:
    """Check, and print the result."""
    show(apply(check, options))
    if options.out is None:
        note("-o FOLDER writes a page with more examples")
    else:
        print_text(f"page: {Path(options.out) / 'check.html'}")


def render_check(result: TextCheck) -> str:
    """Return the page as text; the user's texts in it are escaped and clipped."""
    charts = []
    if can_draw() and result.kinds:
        charts.append(
            chart(
                "Which contradictions come first?",
                "Share of searches that rank the contradiction above the rewording, by its kind, with 95 % intervals. "
                "In brackets the number of searches. 0 % is right; the dotted line is chance.",
                partial(draw_rates, result.kinds),
            )
        )
    return render_template(
        "check.html.j2",
        result=result,
        charts=charts,
        examples=result.examples[:_EXAMPLES],
        opened=_OPENED,
    )


def _sizes(passages: Sequence[DocumentPassage], minutes: float) -> tuple[int, int, int]:
    """Return how many passages to search, sentences to rewrite and sentences to parse.

    They follow from the minutes alone, not from the speed of the model, so that two models are
    compared on the same sentences.
    """
    documents = min(max(50, int(_DOCUMENTS * minutes)), 5000)
    limit = min(max(30, int(_CASES * minutes)), 400)
    return min(documents, len(passages)), limit, max(100, int(_PARSED * minutes))


def _expected_minutes(
    embedder: Embedder, passages: Sequence[DocumentPassage], documents: int, limit: int
) -> float:
    """Return about how many minutes the model takes, from the time that some passages take."""
    chosen = np.random.default_rng(0).permutation(len(passages))[:_TIMED].tolist()
    sample = [passages[i].text for i in chosen]
    # The first call takes longer, and would make the estimate too high.
    embedder(sample[:2])
    before = time.perf_counter()
    embedder(sample)
    seconds = (time.perf_counter() - before) / len(sample)
    per_sentence = seconds * len(sample) / max(1, sum(len(passages[i].sentences) for i in chosen))
    return (seconds * documents + _VERSIONS * per_sentence * limit) / 60
