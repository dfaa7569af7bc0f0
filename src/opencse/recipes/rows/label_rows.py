"""The user's labels as rows, views and terms of a recipe."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file
from opencse.losses import SimilarityBound, SimilarityOrder, Term
from opencse.recipes import MixturePart, Recipe
from opencse.recipes.rows.labels import BETTER, COLUMNS, OPPOSITE, SAME, WORSE, Labels
from opencse.recipes.rows.mixture import draw_evenly
from opencse.text.corpus import Corpus


def with_labels(recipe: Recipe, labels: Labels) -> Recipe:
    """Return the recipe with views, terms and parts for the labels.

    Pairs that say the same get a cosine of at least 0.9, opposite ones of at most 0.7; the better hit of a search is
    nearer than the worse by 0.1.

    Raises:
        OpencseError: The recipe trains on columns that labels lack.
    """
    anchor = next((name for name, view in recipe.used_views.items() if view.text == "text"), None)
    needed = sorted(column for column, optional in recipe.columns.items() if not optional and column != "text")
    if anchor is None or needed:
        lacking = needed[0] if needed else "text"
        raise OpencseError(
            f"the recipe {recipe.name} cannot be trained on labels: it needs the column {lacking} in each row",
            "Use debias, or a recipe that reads the text alone.",
        )
    parts = recipe.corpus.parts
    if parts:
        rows = labels.training_rows(sum(part.rows for part in parts.values()))
        needs = {column: (BETTER, WORSE) if column == BETTER else (column,) for column in rows}
        parts = {**parts, **{f"{column}s": MixturePart(rows=rows[column], needs=needs[column]) for column in rows}}
    views = {name: replace(recipe.views[anchor], text=name, optional=True) for name in labels.columns}
    return replace(
        recipe,
        views={**recipe.views, **views},
        terms=(*recipe.terms, *_terms(anchor, labels.columns)),
        corpus=replace(recipe.corpus, parts=parts),
    )


def join_labels(rows: Corpus, labels: Labels, out: Path, *, columns: Collection[str], drawn: bool, seed: int) -> Corpus:
    """Write the rows of a corpus and, behind them, those of the labels.

    Args:
        rows: Rows with a column `text`.
        labels: The labels.
        out: The Parquet file to write.
        columns: Columns of the rows to keep, beside `text`.
        drawn: Draw as many labelled rows as training takes and shuffle all rows, for recipes without parts
            (`mix_rows` does both for those that have some).
        seed: Seed of the draw and of the order.
    """
    kept = ["text", *(name for name in rows.columns if name in columns and name not in ("text", *COLUMNS))]
    table = [(*row, None, None, None, None) for row in rows.rows(kept)]
    added, rng = labels.rows, random.Random(seed)
    if drawn:
        wanted = labels.training_rows(len(table))
        added = tuple(row for column in wanted for row in draw_evenly(labels.of(column), wanted[column], rng))
    table += [(text, *[None] * (len(kept) - 1), *others) for text, *others in added]
    if drawn:
        rng.shuffle(table)
    names = [*kept, *COLUMNS]
    cells = dict(zip(names, zip(*table, strict=True), strict=True))
    out.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(out) as path:
        pq.write_table(
            pa.table({name: pa.array(cells[name], pa.string()) for name in names}), path, write_page_checksum=True
        )
    return Corpus(out, rows.name)


def labels_note(recipe: Recipe, labels: Labels, cells: Iterable[Sequence[str | None]]) -> str:
    """Return how many of the training rows are labels, and the weights of their terms.

    Args:
        recipe: The recipe with labels.
        labels: The labels.
        cells: The columns of the labels (`Labels.columns`) in each training row.
    """
    found = [any(row) for row in cells]
    weights = (f"{term.name} {term.weight:g}" for term in recipe.terms if set(term.views) & set(COLUMNS))
    share = f"{sum(found):,} of {len(found):,} training rows ({sum(found) / len(found):.1%})"
    return f"Labels: {labels.describe()}, in {share}. Weights of their terms: {', '.join(weights)}."


def _terms(anchor: str, columns: Sequence[str]) -> Iterator[Term]:
    if SAME in columns:
        yield SimilarityBound(name="labels_same", pairs=((anchor, SAME),), at_least=0.9, weight=3.0)
    if OPPOSITE in columns:
        yield SimilarityBound(name="labels_opposite", pairs=((anchor, OPPOSITE),), at_most=0.7, weight=3.0)
    if BETTER in columns:
        yield SimilarityOrder(
            name="labels_order", closer=((anchor, BETTER),), farther=((anchor, WORSE),), margin=0.1, weight=4.0
        )
