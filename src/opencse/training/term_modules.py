"""The modules of the terms, built with a `opencse.losses.TermBuildContext`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from opencse.encoder.loading import load_masked_lm
from opencse.encoder.packing import use_packed_attention
from opencse.foundation.errors import OpencseError
from opencse.losses import Term, TermBuildContext, TermModule

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def term_modules(
    terms: Sequence[Term],
    encoder: SentenceTransformer,
    projector: nn.Module,
    tokenizer: Any,
    backbone: str,
    seed: int,
    device: torch.device,
) -> dict[str, TermModule]:
    """Return the modules of the terms, by term name.

    Args:
        terms: The terms.
        encoder: The encoder with its initial weights.
        projector: The projector after the encoder.
        tokenizer: The tokenizer of the model, without any template.
        backbone: Name of the model that the encoder was loaded from.
        seed: Seed of the run.
        device: The device of the training steps.

    Raises:
        OpencseError: A term cannot be built with this encoder; the message names it.
    """
    build = TermBuildContext(
        width=encoder.get_embedding_dimension() or 0,
        encoder=encoder,
        projector=projector,
        transformer=getattr(encoder[0], "auto_model", None),
        tokenizer=tokenizer,
        masked_lm=partial(_masked_lm, tokenizer, backbone, device),
        seed=seed,
    )
    modules = {}
    for term in terms:
        try:
            module = term.module(build)
        except (OpencseError, ValueError) as error:
            problem, remedy = getattr(error, "problem", str(error)), getattr(error, "remedy", "")
            raise OpencseError(f"term '{term.name}': {problem}", remedy) from error
        if module is not None:
            modules[term.name] = module
    return modules


def _masked_lm(tokenizer: Any, backbone: str, device: torch.device, name: str) -> nn.Module:
    """Return a masked language model with the vocabulary of the tokenizer; `backbone` names the model of the run."""
    remedy = "Pass a masked language model with the encoder's vocabulary: --set terms.NAME.generator=…"
    try:
        model, own = load_masked_lm(backbone if name == "backbone" else name)
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
        use_packed_attention(model)  # transformers' own would read every mask from the device
    return model
