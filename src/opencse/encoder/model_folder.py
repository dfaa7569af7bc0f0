"""Model folders: checked before any library loads one."""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from opencse.debias.meaning_block import BLOCK_TYPES
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import error_reason, read_json, read_text

_REMEDY = "Download or save the model again."
_MODULES = "sentence_transformers."
"""Modules of other packages are refused: importing them would run code chosen by the folder. opencse's meaning block is
not imported from the folder either (`opencse.encoder.loading`)."""
_MOST_LAYERS = 1000
_DENSE = "SentenceTransformer"


def check_model_folder(folder: Path) -> None:
    """Check that a folder can be loaded without errors, without leaving it and without running its code.

    Raises:
        OpencseError: A file is missing, damaged or of the wrong form; a module lies outside the
            folder or is not one of sentence-transformers' own; or the weights are pickled.
    """
    if (folder / "adapter_config.json").exists() and not (folder / "modules.json").exists():
        raise OpencseError(
            f"{folder}: an adapter (LoRA), not a model",
            "Merge it into its model: merge_and_unload() of peft, then save.",
        )
    saved = (folder / "modules.json").exists()
    modules = _modules(folder) if saved else [{"path": "", "type": "Transformer"}]
    for module in modules:
        path = folder / module["path"] / "config.json"
        is_block = module["type"] in BLOCK_TYPES
        if is_block or module["type"].endswith("Transformer"):
            config = read_json(path, _REMEDY)
            config = dict(config.get("transformer") or {}) if is_block else config
            # A library would try to build so many layers for hours; such rates fail only at the
            # first sentence.
            if isinstance(layers := config.get("num_hidden_layers"), int) and layers > _MOST_LAYERS:
                raise OpencseError(
                    f"{path}: num_hidden_layers is {layers}, more than any model has", _REMEDY
                )
            for key, value in config.items():
                if "dropout" in key and isinstance(value, int | float) and not 0 <= value <= 1:
                    raise OpencseError(
                        f"{path}: {key} is {value!r}, not a share from 0 to 1", _REMEDY
                    )
            _check_weights(path.parent)
    if saved and (folder / "config_sentence_transformers.json").exists():
        kind = read_json(folder / "config_sentence_transformers.json", _REMEDY).get(
            "model_type", _DENSE
        )
        if kind != _DENSE:
            raise OpencseError(
                f"{folder}: a {kind}, which has no dense vectors", f"Use a {_DENSE}."
            )


def transformer_folder(folder: Path) -> Path:
    """Return the folder of the first module of a sentence-transformers model; of a plain one, its own.

    Raises:
        OpencseError: `modules.json` is not a list of modules, or names a folder outside or a module
            of another package; or the first module is no transformer.
    """
    if not (folder / "modules.json").is_file():
        return folder
    first = _modules(folder)[0]
    if not first["type"].endswith("Transformer"):
        kind = first["type"].rpartition(".")[2]
        raise OpencseError(
            f"{folder}: begins with a {kind}, not a transformer",
            "Train a model that begins with one.",
        )
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
        if not isinstance(module, dict) or not all(
            isinstance(module.get(key), str) for key in ("path", "type")
        ):
            raise OpencseError(f"{path}: a module without a path or a type", _REMEDY)
        location = Path(module["path"])
        if location.is_absolute() or ".." in location.parts:
            raise OpencseError(
                f"{path}: the module '{location}' is outside the model's folder", _REMEDY
            )
        if not module["type"].startswith(_MODULES) and module["type"] not in BLOCK_TYPES:
            raise OpencseError(
                f"{path}: '{module['type']}' is not a module of sentence-transformers",
                "Models with their own code are not run.",
            )
    return modules


def _check_weights(folder: Path) -> None:
    whole = [path for path in folder.glob("*.safetensors*") if path.stat().st_size]
    pickled = [
        path for ending in (".bin", ".pt", ".pth", ".ckpt") for path in folder.glob(f"*{ending}")
    ]
    if pickled and not whole:
        new = str(folder / "model.safetensors")
        code = (
            f"import torch, safetensors.torch as s; w = torch.load({str(pickled[0])!r}, weights_only=True); "
            f"s.save_file({{k: v.clone() for k, v in w.items()}}, {new!r}, dict(format='pt'))"
        )
        raise OpencseError(
            f"{pickled[0]}: pickled weights, which can run code when they are loaded",
            f"If you trust them, save them as safetensors: `python -c {shlex.quote(code)}`",
        )
    if not whole:
        raise OpencseError(f"{folder}: contains no model.safetensors, or an empty one", _REMEDY)


def _check_complete(name: object, transformer: Any, folder: Path) -> None:
    """Check that files hold every weight of a transformer but its pooler's; transformers draws others at random."""
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
        missing = sorted(type(transformer).from_pretrained(folder, **settings)[1]["missing_keys"])
    if missing := [key for key in missing if "pooler" not in key]:
        raise OpencseError(
            f"{name}: its files lack {len(missing)} weights, such as {missing[0]}", _REMEDY
        )


def check_loaded(name: object, model: Any, folder: Path) -> None:
    """Check that a model has words, their embeddings, a length to read, and all weights (if of a folder), finite ones.

    Raises:
        OpencseError: It lacks one of these.
    """
    transformer, length, vocabulary = (
        model[0].auto_model,
        model.max_seq_length,
        model.tokenizer.get_vocab(),
    )
    if not (isinstance(length, int | float) and length >= 1):
        raise OpencseError(f"{name}: its maximum length is {length!r}, not a length", _REMEDY)
    # Where a folder lacks the tokenizer's file, transformers makes a tokenizer that reads every
    # text as unknown words.
    if not vocabulary.keys() - model.tokenizer.all_special_tokens:
        raise OpencseError(f"{name}: the tokenizer has no words", _REMEDY)
    rows, tokens = transformer.get_input_embeddings().weight.shape[0], max(vocabulary.values()) + 1
    if tokens > rows:
        raise OpencseError(
            f"{name}: the tokenizer numbers {tokens} tokens, the model only {rows}", "Use its own."
        )
    if folder.is_dir():
        _check_complete(name, transformer, transformer_folder(folder))
    require_finite(transformer, str(name))


def require_finite(module: torch.nn.Module, name: str) -> None:
    """Check that all weights are finite.

    Raises:
        OpencseError: A weight is not finite.
    """
    for key, tensor in module.state_dict().items():
        if (
            tensor.is_floating_point()
            and not tensor.is_meta
            and not bool(torch.isfinite(tensor).all())
        ):
            raise OpencseError(
                f"{name}: the weights {key} contain a number that is not finite", _REMEDY
            )


def has_pooling(source: str) -> bool:
    """Return whether a folder or hub id is a sentence-transformers model, not a plain encoder, which has no pooling."""
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
    levels, bars = [logger.level for logger in loggers], hf_logging.is_progress_bar_enabled()
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
