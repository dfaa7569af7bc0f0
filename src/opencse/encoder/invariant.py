"""The invariant of every model: training, `model.encode` and the saved folder give the same vectors.

A run checks it at its start and its end on a handful of texts, and `save_encoder` checks every folder
that it writes. A setting that one of the three would read differently then ends the run with an
error, instead of training, measuring or shipping another model than the user's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from opencse.encoder.dropout import evaluation_mode
from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOLERANCE = 1e-5
"""Largest difference of a coordinate, in units of the longest vector, or of 1 if all are shorter."""
ACCELERATOR_TOLERANCE = 1e-3
"""The same on accelerators, whose kernels sum in another order for each shape."""
SAMPLE = (
    "The cat sits on the red house.",
    "no",
    "A naïve user's 3.5-km UNFORGETTABLE state-of-the-art isn't #1!",
    "a small dog runs quickly in the garden and a big bird sings today " * 40,
)
"""Texts of different lengths; the last is cut by most models."""


def largest_difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference of a coordinate, in units of the longest expected vector (at least 1).

    Args:
        found: Vectors (n, d).
        expected: Vectors of the same texts; of another shape, the difference is infinite.
    """
    if found.shape != expected.shape:
        return float("inf")
    longest = float(np.linalg.norm(expected, axis=1).max(initial=1.0))
    difference = float(np.abs(found - expected).max(initial=0.0)) / longest
    # A comparison with NaN is false, so a difference of NaN would pass as small.
    return difference if np.isfinite(difference) else float("inf")


def require_equal(
    found: np.ndarray, expected: np.ndarray, problem: str, remedy: str, device: torch.device
) -> float:
    """Return the largest difference of two sets of vectors.

    Raises:
        OpencseError: It is larger than the tolerance of the device.
    """
    difference = largest_difference(found, expected)
    allowed = TOLERANCE if device.type == "cpu" else ACCELERATOR_TOLERANCE
    if difference > allowed:
        raise OpencseError(f"{problem} (vectors differ by {difference:.2g})", remedy)
    return difference


def encode_alone(
    model: SentenceTransformer,
    texts: Sequence[str],
    task: str | None = None,
    prompt: str | None = None,
) -> np.ndarray:
    """Return what `model.encode` gives for each text alone, float32 (n, d); the mode of the model stays.

    Each text is a separate batch. In batches, a model that pads on the left and counts positions
    from the left edge gives vectors that depend on the other texts.

    Args:
        model: The model.
        texts: The texts.
        task: `query` for `encode_query`, `document` for `encode_document`, None for `encode`.
        prompt: A prompt; None for that of the model and the task.
    """
    encode: Any = model.encode
    if task == "query":
        encode = model.encode_query
    elif task == "document":
        encode = model.encode_document
    with evaluation_mode(model):
        vectors = [encode([text], prompt=prompt, show_progress_bar=False)[0] for text in texts]
    return np.asarray(vectors, dtype=np.float32)


@contextlib.contextmanager
def reading_at_most(model: SentenceTransformer, tokens: int) -> Iterator[None]:
    """Let a model read at most some tokens of a text, special ones included, for the length of a `with` block."""
    first: Any = model[0]
    length = model.max_seq_length
    settings = getattr(first, "processing_kwargs", None) or {}
    model.max_seq_length = tokens
    # A tokenizer's own settings come after the length of the model, and would win.
    if "max_length" in settings.get("text", {}):
        first.processing_kwargs = settings | {"text": settings["text"] | {"max_length": tokens}}
    try:
        yield
    finally:
        model.max_seq_length = length
        if settings:
            first.processing_kwargs = settings


def token_limit(model: SentenceTransformer) -> int | None:
    """Return how many tokens of a text a model reads, special ones included: its length, or less by its processing."""
    settings = getattr(model[0], "processing_kwargs", None) or {}
    limits = [model.max_seq_length, settings.get("text", {}).get("max_length")]
    return min((limit for limit in limits if limit is not None), default=None)


def tasks_of(model: SentenceTransformer) -> list[str | None]:
    """Return the tasks that a model distinguishes (`encode_alone`): None, unless a router asks for one."""
    first: Any = model[0]
    tasks: list[str | None] = []
    if type(first).__name__ != "Router" or first.default_route is not None:
        tasks.append(None)
    for task in ("query", "document"):
        # A router without a route for a task raises this error.
        with contextlib.suppress(ValueError):
            if type(first).__name__ == "Router" and first._resolve_route_name(task, "text"):
                tasks.append(task)
    return tasks


def check_copy(copy: SentenceTransformer, model: SentenceTransformer, name: str) -> float:
    """Return the largest difference of the vectors of a saved model, which was read again, from those in memory.

    Args:
        copy: The model as it was read from its folder.
        model: The model in memory.
        name: Name of the folder in the message.

    Raises:
        OpencseError: They differ.
    """
    worst = 0.0
    for task in tasks_of(model):
        found = encode_alone(copy, SAMPLE, task)
        expected = encode_alone(model, SAMPLE, task)
        problem = f"{name}: the saved model gives other vectors than the one in memory"
        remedy = "Nothing was saved. Please report this model's settings (its JSON files)."
        worst = max(worst, require_equal(found, expected, problem, remedy, model.device))
    return worst
