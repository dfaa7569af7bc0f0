"""Task vectors: what other recipes' training changes in the weights, to be added to a run's own change.

Task arithmetic (Ilharco et al., Editing Models with Task Arithmetic, ICLR 2023). The runs know nothing of each other:
no loss has to be balanced against another.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from opencse.encoder import load_encoder
from opencse.encoder.weights_hash import weights_hash
from opencse.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from opencse.recipes import Recipe


def weighted_sum(
    recipe: Recipe, untouched: SentenceTransformer, models: Mapping[str, Path]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Add up the changes of all task vectors, each times its weight.

    Args:
        recipe: Says the weights.
        untouched: The encoder that this run and those of the other recipes start from.
        models: What the other recipes made of it, by the task vector's name.

    Returns:
        The change of each floating-point weight, and the hash of each model (`weights_hash`).

    Raises:
        OpencseError: A model has other weights than the untouched one.
    """
    total: dict[str, Tensor] = {}
    hashes: dict[str, str] = {}
    start = {name: tensor for name, tensor in untouched.state_dict().items() if tensor.is_floating_point()}
    for label, folder in models.items():
        settings = recipe.task_vectors[label]
        model = load_encoder(folder, pooling="backbone")
        hashes[label] = weights_hash(model)
        end = model.state_dict()
        for name, tensor in start.items():
            if name not in end or end[name].shape != tensor.shape:
                raise OpencseError(
                    f"task_vectors.{label}: what {settings.recipe} trains has other weights than this run ({name})",
                    "Both need the same prompt: see its `set`.",
                )
            change = settings.weight * (end[name].to(tensor.device) - tensor)
            total[name] = total[name] + change if name in total else change
    return total, hashes
