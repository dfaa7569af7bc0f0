"""Saving of models in a form that old versions of sentence-transformers can load."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from opencse.encoder.invariant import check_copy
from opencse.encoder.loading import open_model
from opencse.encoder.model_folder import quiet, require_finite
from opencse.foundation.files import replaced, write_json
from opencse.foundation.plugins import MODULES, saved_type

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


OLDEST = "3.4"
"""The oldest sentence-transformers that loads a folder of `save_encoder`.

It works with transformers from 4.41 on.
"""
_KINDS = (
    "CNN",
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

    The folder is written atomically; an existing one is replaced. Before that it is read again, and
    its vectors of a few texts are compared with those of the model in memory.

    Args:
        model: The encoder, without projectors and other parts of the training.
        folder: The folder.
        card: Text of `README.md`; None for the card of sentence-transformers.

    Raises:
        OpencseError: A weight is not finite, the folder cannot be written, or the saved model gives
            other vectors.
    """
    require_finite(model, "the trained model")
    _forget_last_call(model)
    with (
        replaced(Path(folder), folder=True) as temporary,
        quiet(),
        contextlib.suppress(UserWarning),
    ):
        model.save_pretrained(str(temporary), create_model_card=card is None)
        _use_old_names(temporary, model)
        if card is not None:
            (temporary / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace")
        _check_saved(model, temporary, str(folder))


def _forget_last_call(model: SentenceTransformer) -> None:
    """Reset what fast tokenizers remember of their last call: a saved model must not depend on what was tokenised."""
    for module in model.modules():
        tokenizer = getattr(module, "tokenizer", None)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()


def _check_saved(model: SentenceTransformer, written: Path, name: str) -> None:
    """Read a folder that was just written, and compare its vectors with those of the model in memory.

    A model in half precision is compared as it is in single precision, in which folders are read.
    """
    if model.device.type == "meta":
        return
    copy_of_folder = open_model(name, str(written), device=model.device)
    expected = model
    if any(tensor.dtype in (torch.float16, torch.bfloat16) for tensor in model.parameters()):
        expected = copy.deepcopy(model).float()
    check_copy(copy_of_folder, expected, name)


# The order in which old versions join the vectors of several poolings.
_CANONICAL = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# Settings of a transformer that change vectors, and that sentence-transformers writes only if they
# are set.
_TRANSFORMER_KEYS = (
    "processing_kwargs",
    "unpad_inputs",
    "query_length",
    "document_length",
    "query_expansion",
)
_TEXT_TASK = "feature-extraction"


def _use_old_names(folder: Path, model: SentenceTransformer) -> None:
    """Rewrite the settings of a saved model in the form that all versions read; sentence-transformers 6 writes its own.

    A setting that older versions lack is kept in its own form, and so are modules that they lack:
    such a model needs a newer version, but it stays the same model.
    """
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    for module in modules:
        kind = module["type"].rpartition(".")[2]
        if module["type"] in MODULES:
            module["type"] = saved_type(module["type"])
        if kind not in _KINDS:
            continue
        module["type"] = f"sentence_transformers.models.{kind}"
        path = folder / module["path"] / "config.json"
        if kind == "Transformer":
            path = folder / module["path"] / "sentence_bert_config.json"
        elif kind == "CNN":
            path = folder / module["path"] / "cnn_config.json"
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kind == "Transformer":
            settings = _transformer_settings(settings, model)
        elif kind == "Pooling":
            settings = _pooling_settings(settings)
        else:
            settings = _other_settings(settings)
        write_json(path, settings)
    write_json(folder / "modules.json", modules)
    path = folder / "tokenizer_config.json"
    if path.is_file():
        settings = json.loads(path.read_text(encoding="utf-8"))
        # The name that transformers 5 has for it.
        if settings.get("tokenizer_class") == "TokenizersBackend":
            settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        # transformers writes the sides that the tokenizer was loaded with, not those set since.
        for side in ("truncation_side", "padding_side"):
            current = getattr(model.tokenizer, side, None)
            if current is not None and current != settings.get(side, "right"):
                settings[side] = current
        write_json(path, settings)


def _transformer_settings(written: dict[str, Any], model: SentenceTransformer) -> dict[str, Any]:
    """Return `sentence_bert_config.json`: two keys that every version knows, and those that differ from the defaults."""
    settings = {
        "max_seq_length": model.max_seq_length,
        "do_lower_case": written.get("do_lower_case", False),
    }
    for key in _TRANSFORMER_KEYS:
        if written.get(key) is not None:
            settings[key] = written[key]
    plain_text = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    known = (_TEXT_TASK, plain_text, "token_embeddings")
    stated = (
        written.get("transformer_task", _TEXT_TASK),
        written.get("modality_config", plain_text),
        written.get("module_output_name", "token_embeddings"),
    )
    if stated != known:
        for key in ("transformer_task", "modality_config", "module_output_name"):
            if key in written:
                settings[key] = written[key]
    return settings


def _pooling_settings(written: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a pooling in the old form, unless it joins several in another order than old versions do."""
    modes = written["pooling_mode"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if modes != [mode for mode in _CANONICAL if mode in modes]:
        return written
    return {
        "word_embedding_dimension": written["embedding_dimension"],
        **{f"pooling_mode_{old}": mode in modes for mode, old in _POOLINGS.items()},
        "include_prompt": written["include_prompt"],
    }


_OLD_KEYS = {
    "embedding_dimension": "word_embedding_dimension",
    "in_embedding_dimension": "in_word_embedding_dimension",
}


def _other_settings(written: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a further module; what it reads and writes is left out where it is the sentence vector."""
    settings = {}
    for key, value in written.items():
        if key in ("module_input_name", "module_output_name") and value == "sentence_embedding":
            continue
        settings[_OLD_KEYS.get(key, key)] = value
    return settings
