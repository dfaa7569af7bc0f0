"""Teachers: other encoders that are run once over the training text; terms read their vectors from disk.

A teacher has no dropout, so its vectors never change: they are computed before training, in one pass over each text
column, and memory-mapped afterwards. The cache key is a hash of the teacher (weights, tokenizer, pooling, length), its
prompt, the precision and the texts, so that a resumed run, another recipe or another file with the same sentences
reuses them. They take 4 bytes per dimension and row. A sentence in several rows or columns is encoded once if it is
among the first million distinct ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.encoder.weights_hash import weights_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase
from opencse.foundation.stores import CachedStore, StoreWriter, key_hash
from opencse.recipes import Recipe, Teacher
from opencse.recipes.rows.token_store import UsableRows
from opencse.text.corpus import chunks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CHUNK = 8192
_MAX_REMEMBERED = 1_000_000  # texts of a column whose hash is kept, about 100 MB


@dataclass(frozen=True)
class LoadedTeacher:
    """A teacher, ready to encode.

    Attributes:
        embedder: The encoder.
        prompt: A plain prompt to put around each text; None for the model's own.
        digest: Hash of everything that determines its vectors.
    """

    embedder: Embedder
    prompt: str | None
    digest: str

    @property
    def model(self) -> SentenceTransformer:
        """The encoder as a module."""
        return self.embedder.model

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of n texts, (n, d_t) fp32."""
        if self.prompt is not None:
            texts = [self.prompt.replace("{}", text) for text in texts]
        return self.embedder.encode(texts)


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
    own, prompt = teacher.model == "backbone", teacher.prompt
    pooling: dict[str, Any] = {"pooling": teacher.pooling or "backbone"}
    if own and teacher.pooling is None:
        pooling = recipe.pooling
        if pooling["pooling"] == "mask" and prompt is not None:
            raise OpencseError("a teacher with its own prompt needs its own pooling", "Give both, or neither.")
    masked = pooling["pooling"] == "mask"
    if masked:
        pooling = {"prompt": prompt} | pooling
    name = str(backbone) if own else teacher.model
    model = backbone.encoder(**pooling) if own else load_encoder(name, **pooling, device=backbone.device)
    if teacher.max_length is not None:
        limit = model.max_seq_length
        if limit is not None and teacher.max_length > limit:
            raise OpencseError(f"max_length is {teacher.max_length}, but {name} takes at most {limit} tokens")
        model.max_seq_length = teacher.max_length
    model.eval()
    plain = None if masked else prompt
    precision: Literal["fp32", "bf16"] = "fp32" if recipe.training.precision == "fp32" else "bf16"
    embedder = Embedder(model, prompt=None if plain is None else "", precision=precision)
    return LoadedTeacher(embedder, plain, key_hash([weights_hash(model), plain, precision]))


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
    if not teachers:
        return {}
    import pyarrow as pa

    columns = {recipe.views[view].text for name in teachers for view in recipe.used_teachers[name]}
    count, texts = _text_hashes(rows, sorted(columns))
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, teacher in teachers.items():
        kind = {"vectors": pa.list_(pa.float32(), teacher.embedder.dimension)}
        by_column: dict[str, np.ndarray] = {}
        known: dict[int, np.ndarray] = {}  # vectors of texts of earlier columns, by their hash
        for column in dict.fromkeys(recipe.views[view].text for view in recipe.used_teachers[name]):
            first: dict[int, int] = {}
            cells = (row[column] for row in rows)
            cached = CachedStore("teachers", [teacher.digest, texts[column]])
            if cached.missing:
                title = f"teacher {name}, {column}"
                with (
                    cached.writer(kind) as writer,
                    Phase(title, total=count, unit="sentences", show=progress) as phase,
                ):
                    _write_vectors(teacher, cells, known, first, phase, writer)
            by_column[column] = vectors = cached.open().columns["vectors"].values
            for key, row in first.items():
                known.setdefault(key, vectors[row])
        found[name] = {view: by_column[recipe.views[view].text] for view in recipe.used_teachers[name]}
    return found


def _text_hashes(rows: UsableRows, columns: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Return the number of rows, and a hash of the texts of each column."""
    digests = {column: hashlib.blake2b(digest_size=16) for column in columns}
    count = 0
    for row in rows:
        count += 1
        for column, digest in digests.items():
            text = row[column]
            data = b"" if text is None else text.encode("utf-8", "surrogatepass")
            digest.update((-1 if text is None else len(data)).to_bytes(8, "little", signed=True) + data)
    return count, {column: digest.hexdigest() for column, digest in digests.items()}


def _write_vectors(
    teacher: LoadedTeacher,
    texts: Iterable[str | None],
    known: Mapping[int, np.ndarray],
    first: dict[int, int],
    phase: Phase,
    writer: StoreWriter,
) -> None:
    """Write the vectors of one column.

    Args:
        teacher: The teacher.
        texts: The cells of the column.
        known: Vectors of the texts of other columns, by their hash.
        first: Receives the first row of each text, by its hash.
        phase: Shows the progress.
        writer: Receives the vectors.
    """
    for chunk in chunks(texts, _CHUNK):
        done = writer.rows
        block = np.zeros((len(chunk), teacher.embedder.dimension), dtype=np.float32)
        keys = {i: _text_key(text) for i, text in enumerate(chunk) if text is not None}
        first_row: dict[int, int] = {}
        for i, key in keys.items():
            first_row[i] = first.get(key, done + i)
            if len(first) < _MAX_REMEMBERED:
                first[key] = first_row[i]
        own = [i for i, row in first_row.items() if row == done + i]
        new = [i for i in own if keys[i] not in known]
        if new:
            block[new] = teacher.encode([str(chunk[i]) for i in new])
        for i in own:
            if keys[i] in known:
                block[i] = known[keys[i]]
        added = writer.added("vectors")
        for i, row in first_row.items():
            block[i] = block[row - done] if row >= done else added[row]
        writer.add(block)
        phase.update(len(chunk))


def _text_key(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
