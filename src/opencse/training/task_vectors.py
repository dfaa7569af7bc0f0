"""Task vectors: changes of the weights by other recipes, added to the change by a run.

Task arithmetic (Ilharco et al., Editing Models with Task Arithmetic, ICLR 2023). The runs are independent, so no loss
has to be balanced against another.
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
    """Return the weighted sum of all task vectors.

    Args:
        recipe: Recipe with the weights of the task vectors.
        untouched: The encoder that all runs start from.
        models: Folders of the trained models, by name of the task vector.

    Returns:
        The change of each floating-point weight, and the hash of each model (`weights_hash`).

    Raises:
        OpencseError: The weights of a model differ in name or shape from the untouched ones.
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
                    f"task_vectors.{label}: the model of {settings.recipe} has other weights than this run ({name})",
                    "Both need the same prompt: see its `set`.",
                )
            change = settings.weight * (end[name].to(tensor.device) - tensor)
            total[name] = total[name] + change if name in total else change
    return total, hashes
