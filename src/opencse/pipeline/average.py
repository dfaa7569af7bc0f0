"""`opencse.average`: the mean of several models' weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.weights_hash import pooling_name
from opencse.errors import OpencseError
from opencse.runs.blending import copy_weights, interpolate
from opencse.training.card import average_card

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_FARTHEST = 0.5
"""Norm of the difference of two models' weights, over the norm of the weights. Runs of `debias` differ by 0.03,
independent weights by 1.4."""


def average(
    models: Sequence[str | Path], *, out: str | Path, pooling: str = "backbone", overwrite: bool = False
) -> Path:
    """Write a model whose weights are the mean of those of several models.

    The mean of runs that differ in their seed is usually better than one of them, and as fast (Wortsman et al., Model
    soups, ICML 2022). They must have been trained from the same model.

    Args:
        models: Two or more folders, runs, hub ids or bundled names.
        out: Folder of the sentence-transformers model to write; new or empty, unless `overwrite`.
        pooling: As for `load_encoder`, for encoders without pooling of their own.
        overwrite: Replace a model that is there; a folder without one is never replaced.

    Returns:
        The folder.

    Raises:
        OpencseError: There are fewer than two models, they differ in their modules, sizes or tokens, they were not
            trained from the same model, or `out` is occupied.
    """
    out = Path(out)
    if len(models) < 2:
        raise OpencseError("one model has no mean with another", "Name two or more models.")
    _check_folder(out, overwrite=overwrite)
    mean = load_encoder(models[0], pooling=pooling, device="cpu")
    for number, name in enumerate(models[1:], 2):
        encoder = load_encoder(name, pooling=pooling, device="cpu")
        _check_alike(mean, encoder, f"{models[0]} and {name}")
        interpolate(mean, copy_weights(mean), encoder.state_dict(), 1 / number)
    save_encoder(mean, out, average_card([str(name) for name in models]))
    return out


def _check_folder(out: Path, *, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise OpencseError(f"{out}: is a file, not a folder", "Choose another output folder.")
    is_model = (out / "modules.json").is_file()
    if out.is_dir() and any(out.iterdir()) and not (is_model and overwrite):
        if is_model:
            raise OpencseError(f"{out}: already holds a model", "Use --overwrite to replace it, or another folder.")
        raise OpencseError(f"{out}: already holds other files", "Choose another output folder.")


def _check_alike(first: SentenceTransformer, second: SentenceTransformer, names: str) -> None:
    """Check that a mean of both models' weights makes sense."""
    remedy = "Average models that were trained from the same one."
    weights, others = first.state_dict(), second.state_dict()
    if {name: tensor.shape for name, tensor in weights.items()} != {name: t.shape for name, t in others.items()}:
        raise OpencseError(f"{names} differ in their modules or sizes", remedy)
    if pooling_name(first) != pooling_name(second) or [*map(type, first)] != [*map(type, second)]:
        raise OpencseError(f"{names} differ in their pooling or modules", remedy)
    if first.tokenizer.get_vocab() != second.tokenizer.get_vocab():
        raise OpencseError(f"{names} differ in their tokens", remedy)
    numbers = [name for name, tensor in weights.items() if tensor.is_floating_point()]
    difference = _norm([weights[name] - others[name] for name in numbers])
    if difference > _FARTHEST * _norm([weights[name] for name in numbers]):
        raise OpencseError(f"the weights of {names} are too far apart for a mean", remedy)


def _norm(tensors: list[Tensor]) -> float:
    return float(torch.stack([tensor.norm() for tensor in tensors]).norm())
