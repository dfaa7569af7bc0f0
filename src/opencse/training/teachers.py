"""Teachers: other encoders that are run once over the training text; terms read their vectors from disk.

A teacher has no dropout, so its vectors never change: they are computed before training, in one pass over each text
column, and memory-mapped afterwards. The cache key is a hash of the teacher (weights, tokenizer, pooling, length), the
precision and the texts, so that a resumed run, another recipe or another file with the same sentences reuses them. They
take 4 bytes per dimension and row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.encoder.embedder import Embedder
from opencse.foundation.cache import CachedStore, key_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase
from opencse.recipes import Recipe, Teacher
from opencse.recipes.rows.token_store import UsableRows
from opencse.text.corpus import chunks
from opencse.text.views.constructor import texts_hash

_CHUNK = 8192


@dataclass(frozen=True)
class LoadedTeacher:
    """A teacher, ready to encode.

    Attributes:
        embedder: The encoder.
        digest: Hash of everything that determines its vectors.
    """

    embedder: Embedder
    digest: str


def load_teachers(recipe: Recipe, backbone: Backbone) -> dict[str, LoadedTeacher]:
    """Load every teacher that the terms read.

    Args:
        recipe: Recipe with teachers and terms.
        backbone: The model of the teacher `backbone`.

    Raises:
        OpencseError: A teacher cannot be loaded; the message names it.
    """
    found = {}
    for name in recipe.used_teachers:
        try:
            found[name] = _load(recipe.teachers[name], recipe, backbone)
        except OpencseError as error:
            problem = f"teachers.{name}: {error.problem}"
            raise OpencseError(problem, error.remedy.replace("encoder.pooling", f"teachers.{name}.pooling")) from error
    return found


def _load(teacher: Teacher, recipe: Recipe, backbone: Backbone) -> LoadedTeacher:
    own = teacher.model == "backbone"
    pooling: dict[str, Any] = (
        recipe.pooling if own and teacher.pooling is None else {"pooling": teacher.pooling or "backbone"}
    )
    name = str(backbone) if own else teacher.model
    model = backbone.encoder(**pooling) if own else load_encoder(name, **pooling, device=backbone.device)
    if teacher.max_length is not None:
        limit = model.max_seq_length
        if limit is not None and teacher.max_length > limit:
            raise OpencseError(f"max_length is {teacher.max_length}, but {name} takes at most {limit} tokens")
        model.max_seq_length = teacher.max_length
    model.eval()
    precision: Literal["fp32", "bf16"] = "fp32" if recipe.training.precision == "fp32" else "bf16"
    embedder = Embedder(model, precision=precision)
    return LoadedTeacher(embedder, key_hash([weights_hash(model), precision]))


def teacher_vectors(
    recipe: Recipe,
    teachers: Mapping[str, LoadedTeacher],
    rows: UsableRows,
    *,
    progress: bool = True,
) -> dict[str, dict[str, np.ndarray]]:
    """Return the vectors of each teacher for its views; vectors that are not cached are computed.

    Args:
        recipe: Recipe with the views of each teacher.
        teachers: The result of `load_teachers`.
        rows: The training rows.
        progress: Show progress while computing.

    Returns:
        Memory-mapped arrays (rows, d_t) fp32 by teacher and view; zero if a row lacks the view.
    """
    found: dict[str, dict[str, np.ndarray]] = {name: {} for name in teachers}
    hashes: dict[str, tuple[str, int]] = {}
    for name, teacher in teachers.items():
        for view in recipe.used_teachers[name]:
            column = recipe.views[view].text
            if column not in hashes:
                hashes[column] = texts_hash(row[column] or "" for row in rows)
            digest, count = hashes[column]
            cached = CachedStore("teachers", [teacher.digest, digest])
            if cached.missing:
                title = f"teacher {name}, {column}"
                with Phase(title, total=count, unit="sentences", show=progress) as phase:
                    _write_vectors(teacher, (row[column] for row in rows), cached, phase)
            found[name][view] = cached.open().columns["vectors"].values
    return found


def _write_vectors(teacher: LoadedTeacher, texts: Iterable[str | None], cached: CachedStore, phase: Phase) -> None:
    import pyarrow as pa

    width = teacher.embedder.dimension
    with cached.writer({"vectors": pa.list_(pa.float32(), width)}) as writer:
        for chunk in chunks(texts, _CHUNK):
            block = np.zeros((len(chunk), width), dtype=np.float32)
            present = [i for i, text in enumerate(chunk) if text is not None]
            if present:
                block[present] = teacher.embedder.encode([str(chunk[i]) for i in present])
            writer.add(block)
            phase.update(len(chunk))
