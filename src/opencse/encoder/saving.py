"""Saving of models in a form that old versions of sentence-transformers can load."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.debias.meaning_block import BLOCK_TYPES
from opencse.encoder.model_folder import quiet, require_finite
from opencse.foundation.files import replaced, write_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


OLDEST = "3.4"
"""The oldest sentence-transformers that loads a folder of `save_encoder`.

It works with transformers from 4.41 on.
"""
_KINDS = (
    "Dense",
    "Dropout",
    "LayerNorm",
    "Normalize",
    "Pooling",
    "Transformer",
    "WeightedLayerPooling",
    "WordWeights",
)
_POOLINGS = {
    "cls": "cls_token",
    "max": "max_tokens",
    "mean": "mean_tokens",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "lasttoken": "lasttoken",
}


def save_encoder(model: SentenceTransformer, folder: str | Path, card: str | None = None) -> None:
    """Write a model so that `SentenceTransformer(folder)` of any version from `OLDEST` on loads it.

    The folder is written atomically; an existing one is replaced.

    Args:
        model: The encoder, without projectors and other parts of the training.
        folder: The folder.
        card: Text of `README.md`; None for the card of sentence-transformers.

    Raises:
        OpencseError: A weight is not finite, or the folder cannot be written.
    """
    require_finite(model, "the trained model")
    _forget_last_call(model)
    with (
        replaced(Path(folder), folder=True) as temporary,
        quiet(),
        contextlib.suppress(UserWarning),
    ):
        model.save_pretrained(str(temporary), create_model_card=card is None)
        _use_old_names(temporary, model.max_seq_length)
        if card is not None:
            (temporary / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace")


def _forget_last_call(model: SentenceTransformer) -> None:
    """Reset what fast tokenizers remember of their last call: a saved model must not depend on what was tokenised."""
    for module in model.modules():
        tokenizer = getattr(module, "tokenizer", None)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()


def _use_old_names(folder: Path, max_length: int | None) -> None:
    """Rewrite the settings of a saved model in the form that all versions read.

    sentence-transformers 6 writes a new form.

    Modules that older versions lack keep their settings.
    """
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    for module in modules:
        kind = module["type"].rpartition(".")[2]
        if module["type"] in BLOCK_TYPES:
            module["type"] = BLOCK_TYPES[0]
        if kind not in _KINDS:
            continue
        module["type"] = f"sentence_transformers.models.{kind}"
        file = "sentence_bert_config.json" if kind == "Transformer" else "config.json"
        path = folder / module["path"] / file
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kind == "Transformer":
            settings = {
                "max_seq_length": max_length,
                "do_lower_case": settings.get("do_lower_case", False),
            }
        elif kind == "Pooling":
            settings = _old_pooling(settings)
        else:
            settings = _old_settings(settings)
        write_json(path, settings)
    write_json(folder / "modules.json", modules)
    tokenizer = folder / "tokenizer_config.json"
    if tokenizer.is_file():
        settings = json.loads(tokenizer.read_text(encoding="utf-8"))
        # The name that transformers 5 has for this class.
        if settings.get("tokenizer_class") == "TokenizersBackend":
            settings["tokenizer_class"] = "PreTrainedTokenizerFast"
            write_json(tokenizer, settings)


def _old_pooling(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a pooling with one switch for each mode."""
    modes = settings["pooling_mode"]
    if isinstance(modes, str):
        modes = [modes]
    old = {"word_embedding_dimension": settings["embedding_dimension"]}
    for mode, name in _POOLINGS.items():
        old[f"pooling_mode_{name}"] = mode in modes
    old["include_prompt"] = settings["include_prompt"]
    return old


def _old_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of another module with the old name of its dimension."""
    old = {}
    for key, value in settings.items():
        if key in ("module_input_name", "module_output_name"):
            # Older versions do not know them.
            continue
        old["word_embedding_dimension" if key == "embedding_dimension" else key] = value
    return old
