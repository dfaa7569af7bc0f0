"""Trials of model folders: weights, settings and tokenizers that are damaged, hostile or do not go together."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.trials.checkpoints import CHANGES, damage
from tests.trials.trial import Expected, Trial
from tests.trials.world import World, not_finite

FILES = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")
FILES += ("modules.json", "config_sentence_transformers.json", "1_Pooling/config.json")


def trials(world: World) -> Iterator[Trial]:
    """Each damaged folder through `evaluate` (a sentence-transformers folder) and `train` (a plain one)."""
    for file in FILES:
        for name, change in CHANGES.items():
            yield _trial(world, f"evaluate: {file} {name}", world.encoder, _damaged(file, change), "either")
    for name, (file, value, expected) in _settings().items():
        yield _trial(world, f"evaluate: {name}", world.encoder, _with(file, value), expected)
    yield _trial(world, "evaluate: pickled weights", world.encoder, _pickled, "clear")
    yield _trial(world, "train: pickled weights", world.model, _pickled, "clear", train=True)
    yield _trial(world, "evaluate: weights NaN", world.encoder, _not_finite, "clear")
    yield _trial(world, "train: weights NaN", world.model, _not_finite, "clear", train=True)
    yield _trial(world, "evaluate: fewer embeddings than tokens", world.encoder, _fewer_embeddings, "clear")
    yield _trial(world, "train: fewer embeddings than tokens", world.model, _fewer_embeddings, "clear", train=True)


def _trial(
    world: World, name: str, source: Path, spoil: Callable[[Path], object], expected: Expected, train: bool = False
) -> Trial:
    def prepared(work: Path) -> list[str]:
        folder = Path(shutil.copytree(source, work / "model"))
        spoil(folder)
        if train:
            return [*world.train(), "--backbone", "model"]
        return ["evaluate", "model", "--pairs", str(world.pairs), "--format", "json", "-o", "scores.json"]

    return Trial("models", name, prepared, expected, check=not_finite)


def _damaged(file: str, change: Callable[[bytes], bytes | None]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / file
        path.is_file() and damage(path, change)

    return spoil


def _with(file: str, value: Any) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / file
        known = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**known, **value} if isinstance(value, dict) else value))

    return spoil


def _settings() -> dict[str, tuple[str, Any, Expected]]:
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    own, settings = "config_sentence_transformers.json", "tokenizer_config.json"
    return {
        "module outside": ("modules.json", [{**module, "path": "../other"}], "clear"),
        "module that is no module": ("modules.json", [{**module, "type": "sentence_transformers.util"}], "clear"),
        "module a number": ("modules.json", [3], "clear"),
        "prompt a number": (own, {"prompts": {"query": 3}}, "clear"),
        "default prompt unknown": (own, {"default_prompt_name": "none"}, "clear"),
        "length absurd": (settings, {"model_max_length": 10**400}, "either"),
        "length 0": (settings, {"model_max_length": 0}, "clear"),
        "tokenizer brings code": (settings, {"auto_map": {"AutoTokenizer": ["evil.T", "evil.T"]}}, "either"),
        "model brings code": ("config.json", {"auto_map": {"AutoModel": "evil.Model"}}, "either"),
        "architecture unknown": ("config.json", {"model_type": "magic"}, "clear"),
        "width other": ("config.json", {"hidden_size": 48}, "clear"),
        "layers more": ("config.json", {"num_hidden_layers": 7}, "either"),
        "layers 10**9": ("config.json", {"num_hidden_layers": 10**9}, "either"),
        "vocabulary smaller": ("config.json", {"vocab_size": 3}, "clear"),
        "heads 0": ("config.json", {"num_attention_heads": 0}, "clear"),
        "dropout NaN": ("config.json", {"hidden_dropout_prob": float("nan")}, "either"),
        "pooling's width other": ("1_Pooling/config.json", {"embedding_dimension": 7}, "either"),
    }


def _pickled(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return print, ("foreign code ran",)

    for path in list(folder.rglob("*.safetensors")):
        path.unlink()
        path.with_name("pytorch_model.bin").write_bytes(pickle.dumps(Evil()))


def _not_finite(folder: Path) -> None:
    _change_weights(folder, lambda tensor: tensor.fill_(float("nan")))


def _fewer_embeddings(folder: Path) -> None:
    _change_weights(folder, lambda tensor: tensor[:20].clone())
    _with("config.json", {"vocab_size": 20})(folder)


def _change_weights(folder: Path, change: Callable[[Any], Any]) -> None:
    from safetensors.torch import load_file, save_file

    path = next(folder.rglob("model.safetensors"))
    tensors = load_file(path)
    for name in tensors:
        if "word_embeddings" in name:
            tensors[name] = change(tensors[name])
    save_file(tensors, path, metadata={"format": "pt"})
