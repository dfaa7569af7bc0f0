"""Model folders: checked once they are loaded."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from opencse.encoder.folder_check import REMEDY, first_transformer
from opencse.foundation.errors import OpencseError


def _check_complete(name: object, transformer: Any, folder: Path) -> None:
    """Check that files hold all weights but the pooler's, as transformers draws missing ones."""
    held: set[str] = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            held |= {key.removeprefix(f"{transformer.base_model_prefix}.") for key in file.keys()}  # noqa: SIM118
    if all(key in held or "pooler" in key for key, _ in transformer.named_parameters()):
        return
    # In files, some weights have other names, which transformers alone knows.
    settings: Any = {
        "config": transformer.config,
        "output_loading_info": True,
        "local_files_only": True,
    }
    with quiet():
        _, report = type(transformer).from_pretrained(folder, **settings)
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise OpencseError(
            f"{name}: its files lack {len(missing)} weights, such as {missing[0]}", REMEDY
        )


def check_loaded(name: object, model: Any, folder: Path) -> None:
    """Check that a loaded model is complete: words, embeddings, a length, finite weights.

    Raises:
        OpencseError: It lacks one of these, or its folder lacks weights.
    """
    transformer = model[0].auto_model
    length = model.max_seq_length
    vocabulary = model.tokenizer.get_vocab()
    if not (isinstance(length, int | float) and length >= 1):
        raise OpencseError(f"{name}: its maximum length is {length!r}, not a length", REMEDY)
    # If a folder lacks the tokenizer's file, transformers makes a tokenizer that reads every text
    # as unknown words.
    if not vocabulary.keys() - model.tokenizer.all_special_tokens:
        raise OpencseError(f"{name}: the tokenizer has no words", REMEDY)
    rows = transformer.get_input_embeddings().weight.shape[0]
    tokens = max(vocabulary.values()) + 1
    if tokens > rows:
        raise OpencseError(
            f"{name}: the tokenizer numbers {tokens} tokens, the model only {rows}", "Use its own."
        )
    # Words and signs that few vocabularies have: without a token for the unknown, tokenizers fail in the middle of texts.
    model.tokenizer(["a dog", "ẞ 中 😀 #1"])
    if folder.is_dir():
        _check_complete(name, transformer, first_transformer(folder))
    require_finite(transformer, str(name))


def require_finite(module: torch.nn.Module, name: str) -> None:
    """Check that all weights are finite.

    Raises:
        OpencseError: A weight is not finite.
    """
    for key, tensor in module.state_dict().items():
        if not tensor.is_floating_point() or tensor.is_meta:
            continue
        if not bool(torch.isfinite(tensor).all()):
            raise OpencseError(
                f"{name}: the weights {key} contain a number that is not finite", REMEDY
            )


def has_pooling(source: str) -> bool:
    """Return whether a folder or hub id is a sentence-transformers model, not a plain encoder."""
    if Path(source).is_dir():
        return (Path(source) / "modules.json").is_file()
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from sentence_transformers.util import is_sentence_transformer_model

    with quiet():
        return bool(is_sentence_transformer_model(source, local_files_only=HF_HUB_OFFLINE))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress bars and load reports of transformers."""
    from transformers.utils import logging as hf_logging

    loggers = [
        logging.getLogger(name)
        for name in ("sentence_transformers", "transformers", "huggingface_hub")
    ]
    levels = [logger.level for logger in loggers]
    bars = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            hf_logging.enable_progress_bar()
