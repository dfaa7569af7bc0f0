"""The modules of the terms, built with a `opencse.losses.TermBuildContext`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from opencse.encoder.attention import use_dropout_attention
from opencse.encoder.backbone import Backbone
from opencse.encoder.masked_lm import load_masked_lm
from opencse.foundation.errors import OpencseError
from opencse.losses import TermBuildContext
from opencse.recipes import Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def term_modules(
    recipe: Recipe,
    encoder: SentenceTransformer,
    projector: nn.Module,
    backbone: Backbone,
    device: torch.device,
) -> dict[str, nn.Module]:
    """Return the modules of the terms, by term name.

    Args:
        recipe: Recipe with the terms.
        encoder: The encoder with its initial weights.
        projector: The projector after the encoder.
        backbone: The model that the encoder was loaded from.
        device: The device of the training steps.

    Raises:
        OpencseError: A term cannot be built with this encoder; the message names it.
    """
    transformer = getattr(encoder[0], "auto_model", None)
    tokenizer = encoder.tokenizer
    if recipe.encoder.pooling == "mask":  # its own tokenizer no longer has the mask token
        tokenizer = backbone.tokenizer
    build = TermBuildContext(
        width=_width(encoder),
        encoder=encoder,
        projector=projector,
        transformer=transformer,
        tokenizer=tokenizer,
        masked_lm=partial(_masked_lm, tokenizer, backbone, device),
        seed=recipe.training.seed,
    )
    modules = {}
    for term in recipe.terms:
        try:
            module = term.module(build)
        except (OpencseError, ValueError) as error:
            problem, remedy = getattr(error, "problem", str(error)), getattr(error, "remedy", "")
            raise OpencseError(f"term '{term.name}': {problem}", remedy) from error
        if module is not None:
            modules[term.name] = module
    return modules


def _width(encoder: SentenceTransformer) -> int:
    width = encoder.get_embedding_dimension()
    assert width is not None
    return width


def _masked_lm(tokenizer: Any, backbone: Backbone, device: torch.device, name: str) -> nn.Module:
    """Return a masked language model with the vocabulary of the tokenizer; `backbone` names the model of the run."""
    remedy = "Pass a masked language model with the encoder's vocabulary: --set terms.NAME.generator=…"
    try:
        model, own = load_masked_lm(backbone.name if name == "backbone" else name)
    except OpencseError as error:
        raise OpencseError(error.problem, f"{remedy} ({error.remedy})") from error
    if own.get_vocab() != tokenizer.get_vocab():
        raise OpencseError(
            f"the masked language model '{name}' has another vocabulary ({len(own)} tokens) than the encoder "
            f"({len(tokenizer)} tokens)",
            remedy,
        )
    assert isinstance(model, nn.Module)
    if device.type != "cpu":
        use_dropout_attention(model)  # transformers' own would read every mask from the device
    return model
