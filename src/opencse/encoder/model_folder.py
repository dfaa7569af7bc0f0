"""Checks of a model folder before any library loads it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import torch

from opencse.encoder.meaning_block import BLOCK_TYPES
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import error_reason, read_json, read_text

_REMEDY = "Download or save the model again."
_MODULES = "sentence_transformers."
"""Modules of other packages are refused: importing them would run code chosen by the folder. opencse's meaning block is
not imported from the folder either (`opencse.encoder.loading`)."""
_MOST_LAYERS = 1000
_DENSE = "SentenceTransformer"
_FORMAT = "{'format': 'pt'}"


def check_model_folder(folder: Path) -> None:
    """Check that a folder can be loaded without errors, without leaving it and without running its code.

    Raises:
        OpencseError: A file is missing, damaged or of the wrong form; a module lies outside the folder or is not one of
            sentence-transformers' own; or the weights are pickled.
    """
    if (folder / "adapter_config.json").exists() and not (folder / "modules.json").exists():
        raise OpencseError(
            f"{folder}: an adapter (LoRA), not a model",
            "Merge it into its model: merge_and_unload() of peft, then save.",
        )
    plain = [{"path": "", "type": "Transformer"}]
    modules = _modules(folder) if (folder / "modules.json").exists() else plain
    first = modules[0]
    transformer = folder / first["path"]
    if first["type"].endswith("Transformer"):  # static embeddings, for example, have neither
        _check_config(transformer / "config.json", read_json(transformer / "config.json", _REMEDY))
        _check_weights(transformer)
    for module in modules:
        if module["type"] in BLOCK_TYPES:
            path = folder / module["path"] / "config.json"
            _check_config(path, dict(read_json(path, _REMEDY).get("transformer") or {}))
            _check_weights(path.parent)
    for name in ("config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer_config.json"):
        for subfolder in {folder, transformer}:
            if (subfolder / name).exists():
                _check_settings(subfolder / name, read_json(subfolder / name, _REMEDY))


def transformer_folder(folder: Path) -> Path:
    """Return the folder of the first module of a sentence-transformers model.

    Raises:
        OpencseError: `modules.json` is not a list of modules, or names a folder outside or a module of another package;
            or the first module is no transformer.
    """
    first = _modules(folder)[0]
    if not first["type"].endswith("Transformer"):
        kind = first["type"].rpartition(".")[2]
        raise OpencseError(f"{folder}: begins with a {kind}, not a transformer", "Train a model that begins with one.")
    return folder / first["path"]


def _modules(folder: Path) -> list[dict[str, str]]:
    path = folder / "modules.json"
    try:
        modules = json.loads(read_text(path, _REMEDY))
    except (ValueError, RecursionError) as error:
        raise OpencseError(f"{path}: not JSON ({error_reason(error)})", _REMEDY) from None
    if not isinstance(modules, list) or not modules:
        raise OpencseError(f"{path}: not a list of modules", _REMEDY)
    for module in modules:
        _check_module(path, module)
    kinds = [module["type"] for module in modules]
    if kinds.count(kinds[0]) > 1:
        raise OpencseError(f"{path}: two modules are a {kinds[0].rpartition('.')[2]}", _REMEDY)
    return modules


def _check_module(path: Path, module: Any) -> None:
    if not isinstance(module, dict) or not all(isinstance(module.get(key), str) for key in ("path", "type")):
        raise OpencseError(f"{path}: a module without a path or a type", _REMEDY)
    location = Path(module["path"])
    if location.is_absolute() or ".." in location.parts:
        raise OpencseError(f"{path}: the module '{location}' is outside the model's folder", _REMEDY)
    if not module["type"].startswith(_MODULES) and module["type"] not in BLOCK_TYPES:
        raise OpencseError(
            f"{path}: '{module['type']}' is not a module of sentence-transformers",
            "Models with their own code are not run.",
        )


def _check_weights(folder: Path) -> None:
    whole = [path for path in folder.glob("*.safetensors*") if path.stat().st_size]
    pickled = [path for ending in (".bin", ".pt", ".pth", ".ckpt") for path in folder.glob(f"*{ending}")]
    if pickled and not whole:
        code = (
            "import torch, safetensors.torch as s; "
            f"w = torch.load({str(pickled[0])!r}, weights_only=True); "
            f"s.save_file({{k: v.clone() for k, v in w.items()}}, {str(folder / 'model.safetensors')!r}, {_FORMAT})"
        )
        raise OpencseError(
            f"{pickled[0]}: pickled weights, which can run code when they are loaded",
            f"If you trust them, save them as safetensors: `python -c {shlex.quote(code)}`",
        )
    if not whole:
        raise OpencseError(f"{folder}: contains no model.safetensors, or an empty one", _REMEDY)


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    """Check the settings whose wrong types would only fail later, inside a library."""
    prompts = settings.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise OpencseError(f"{path}: a prompt is not text", _REMEDY)
    kind = settings.get("model_type", _DENSE) if path.name == "config_sentence_transformers.json" else _DENSE
    if kind != _DENSE:
        raise OpencseError(f"{path}: the model is a {kind}, which has no dense vectors", "Use a SentenceTransformer.")
    name = settings.get("default_prompt_name")
    if name is not None and name not in prompts:
        raise OpencseError(f"{path}: the default prompt {name!r} is not among the prompts", _REMEDY)
    for key in ("max_seq_length", "model_max_length"):
        value = settings.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1):
            raise OpencseError(f"{path}: {key} is {value!r}, not a length", _REMEDY)


def _check_config(path: Path, config: dict[str, Any]) -> None:
    """Refuse sizes that a library would try to build for hours, and rates that fail only at the first sentence."""
    layers = config.get("num_hidden_layers")
    if isinstance(layers, int) and layers > _MOST_LAYERS:
        raise OpencseError(f"{path}: num_hidden_layers is {layers}, more than any model has", _REMEDY)
    for key, value in config.items():
        if "dropout" in key and isinstance(value, int | float) and not 0 <= value <= 1:
            raise OpencseError(f"{path}: {key} is {value!r}, not a share from 0 to 1", _REMEDY)


def check_loaded(name: object, transformer: Any, tokenizer: Any) -> None:
    """Check that the model has an embedding for every token, and that its weights are finite.

    Raises:
        OpencseError: It lacks embeddings, or a weight is not finite.
    """
    embeddings = transformer.get_input_embeddings()
    rows, tokens = embeddings.weight.shape[0], max(tokenizer.get_vocab().values(), default=-1) + 1
    if tokens > rows:
        raise OpencseError(
            f"{name}: the tokenizer numbers {tokens} tokens, the model only {rows}", "Use the tokenizer of this model."
        )
    require_finite(transformer, str(name))


def require_finite(module: torch.nn.Module, name: str) -> None:
    """Check that all weights are finite.

    Raises:
        OpencseError: A weight is not finite.
    """
    for key, tensor in module.state_dict().items():
        if tensor.is_floating_point() and not tensor.is_meta and not bool(torch.isfinite(tensor).all()):
            raise OpencseError(f"{name}: the weights {key} contain a number that is not finite", _REMEDY)
