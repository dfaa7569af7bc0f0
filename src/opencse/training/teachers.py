"""The vectors of teachers: computed once before training, cached and memory-mapped.

A teacher is another encoder that has no dropout, so its vectors never change: they are computed in
one pass over each text column, cached under a hash of the teacher (weights, tokenizer, pooling,
length), the precision and the texts, and memory-mapped: 4 bytes per dimension and row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder, cached_vectors
from opencse.foundation.cache import Together
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe
from opencse.recipes.rows.token_store import UsableRows
from opencse.recipes.schema import Teacher
from opencse.text.views.registry import texts_hash


def load_teachers(recipe: Recipe, backbone: Backbone) -> dict[str, Embedder]:
    """Load every teacher that the losses read.

    Args:
        recipe: Recipe with teachers and losses.
        backbone: The model of the teacher `backbone`.

    Raises:
        OpencseError: A teacher cannot be loaded; the message names it.
    """
    teachers = {}
    for name in recipe.used_teachers:
        try:
            teachers[name] = _load(recipe.teachers[name], recipe, backbone)
        except OpencseError as error:
            problem = f"teachers.{name}: {error.problem}"
            raise OpencseError(
                problem, error.remedy.replace("encoder.pooling", f"teachers.{name}.pooling")
            ) from error
    return teachers


def _load(teacher: Teacher, recipe: Recipe, backbone: Backbone) -> Embedder:
    is_backbone = teacher.model == "backbone"
    pooling: dict[str, Any] = {"pooling": teacher.pooling or "backbone"}
    if is_backbone and teacher.pooling is None:
        pooling = recipe.pooling
    if is_backbone:
        name = str(backbone)
        model = backbone.encoder(**pooling)
    else:
        name = teacher.model
        model = load_encoder(name, **pooling, device=backbone.device)
    if teacher.max_length is not None:
        limit = model.max_seq_length
        if limit is not None and teacher.max_length > limit:
            raise OpencseError(
                f"max_length is {teacher.max_length}, but {name} takes at most {limit} tokens"
            )
        model.max_seq_length = teacher.max_length
    model.eval()
    full = "fp32" in (recipe.training.precision, recipe.training.teacher_precision)
    precision: Literal["fp32", "bf16"] = "fp32" if full else "bf16"
    return Embedder(model, precision=precision)


def teacher_vectors(
    recipe: Recipe,
    teachers: Mapping[str, Embedder],
    rows: UsableRows,
    *,
    progress: bool = True,
    together: Together | None = None,
) -> dict[str, dict[str, np.ndarray]]:
    """Return the vectors of each teacher for its views; vectors that are not cached are computed.

    Args:
        recipe: Recipe with the views of each teacher.
        teachers: The result of `load_teachers`.
        rows: The training rows.
        progress: Show progress while computing.
        together: The processes that compute the vectors together; all of them call this function.

    Returns:
        Memory-mapped arrays (rows, d_t) fp32 by teacher and view; zero if a row lacks the view.
    """
    vectors: dict[str, dict[str, np.ndarray]] = {name: {} for name in teachers}
    hashes: dict[str, tuple[str, int]] = {}
    for name, teacher in teachers.items():
        for view in recipe.used_teachers[name]:
            column = recipe.views[view].text
            if column not in hashes:
                hashes[column] = texts_hash(row[column] or "" for row in rows)
            title = f"teacher {name}, {column}" if progress else ""
            vectors[name][view] = cached_vectors(
                teacher, _Texts(rows, column), hashes[column], title, together
            )
    return vectors


class _Texts:
    """The texts of one column, read again at each iteration."""

    def __init__(self, rows: UsableRows, column: str) -> None:
        self._rows = rows
        self._column = column

    def __iter__(self) -> Iterator[str | None]:
        for row in self._rows:
            yield row[self._column]
