"""The check that a run trains on the vectors that `model.encode` gives (`opencse.encoder.invariant`).

Training cuts, frames and packs tokens itself, which is several times as fast as `model.encode`. So
each run compares the two on a few of its rows, before the first step and after the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from opencse.encoder.dropout import evaluation_mode
from opencse.encoder.invariant import encode_alone, reading_at_most, require_equal
from opencse.encoder.prompts import encoder_frame
from opencse.recipes.rows.token_store import TokenSource, UsableRows
from opencse.training.batches import Batch, Collator, ViewTokens
from opencse.training.encoding import encode

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# The shortest and the longest text are looked for in so many rows, from the first.
_LOOKED_AT = 64
_REMEDY = "A setting of this model is not supported in training. Please report its settings (its JSON files)."


def check_same_vectors(
    encoder: SentenceTransformer,
    collator: Collator,
    views: Mapping[str, ViewTokens],
    rows: UsableRows,
    *,
    packed: bool,
) -> float:
    """Return the largest difference of the vectors in training and those of `encoder.encode`, in units of their length.

    Views with their own template are left out: `encoder.encode` has another one.

    Args:
        encoder: The encoder that trains.
        collator: Builder of its batches.
        views: The views of the batches.
        rows: The rows of the batches.
        packed: Whether the encoder computes its batches packed when it trains; this way is compared, too.

    Raises:
        OpencseError: They differ.
    """
    numbers, chosen = _different_rows(rows, next(iter(views.values())).source)
    device = encoder.device
    batch = collator.without_changes()(numbers).to(device)
    batch = replace(batch, passes=[replace(part, dropout=0.0) for part in batch.passes])
    own_frame = encoder_frame(encoder)
    worst = 0.0
    computed = [(_vectors(encoder, batch, training=False), "in evaluation mode")]
    if packed and not getattr(encoder[0].auto_model.config, "layerdrop", 0):  # type: ignore[union-attr]
        computed.append((_vectors(encoder, batch, training=True), "packed without padding"))
    for place, (name, view) in enumerate(views.items()):
        if (view.frame.before, view.frame.after) != (own_frame.before, own_frame.after):
            continue
        source = rows.sources[view.source]
        present = [i for i, row in enumerate(chosen) if row[source.column] is not None]
        if not present:
            continue
        texts = [str(chosen[i][source.column]) for i in present]
        expected = _expected(encoder, source, texts, len(view.frame) + view.budget)
        for vectors, how in computed:
            problem = f"view '{name}': training {how} does not see the vectors of model.encode"
            worst = max(
                worst, require_equal(vectors[place, present], expected, problem, _REMEDY, device)
            )
    return worst


def _different_rows(rows: UsableRows, source: int) -> tuple[list[int], list[dict[str, str | None]]]:
    """Return the numbers and cells of the first two rows, the shortest and the longest."""
    first = list(islice(rows, _LOOKED_AT))
    column = rows.sources[source].column
    lengths = [len(row[column] or "") for row in first]
    numbers = [0, 1, int(np.argmin(lengths)), int(np.argmax(lengths))]
    numbers = [number for number in dict.fromkeys(numbers) if number < len(first)]
    return numbers, [first[number] for number in numbers]


def _vectors(encoder: SentenceTransformer, batch: Batch, *, training: bool) -> np.ndarray:
    """Return the sentence vectors (views, rows, d) of a batch as a training step computes them, without dropout."""
    with evaluation_mode(encoder), torch.no_grad():
        if training:
            for module in encoder.modules():
                module.training = True
        vectors = encode(encoder, batch, whole=True)
        if training:
            for module in encoder.modules():
                module.training = False
    return vectors.float().cpu().numpy()


def _expected(
    encoder: SentenceTransformer, source: TokenSource, texts: Sequence[str], tokens: int
) -> np.ndarray:
    """Return what `encode` gives for texts of a source, if the model reads as many tokens as training does."""
    prompt: str | None = None
    if source.prompt is not None:
        before, _, after = source.prompt.partition("{}")
        if after:
            texts = [source.prompt.replace("{}", text) for text in texts]
            prompt = ""
        else:
            prompt = before
    elif encoder.default_prompt_name is not None:
        prompt = ""
    with reading_at_most(encoder, tokens):
        return encode_alone(encoder, texts, prompt=prompt)
