"""The model that a run begins with, opened once, and the hash that identifies a model.

Caches and result files are keyed by the hash, because names collide.
"""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from opencse.encoder.device import choose_device
from opencse.encoder.dropout import dropout_rates
from opencse.encoder.loading import chosen_pooling, load_config, open_model, pooled, pools_the_mask
from opencse.encoder.model_folder import has_pooling
from opencse.encoder.names import family_of, resolve
from opencse.encoder.saving import save_encoder
from opencse.foundation.cache import cache_place, key_hash
from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Backbone:
    """A model to start from: its configuration is read at once, its weights when first needed.

    Args:
        given: A folder, a hub id, a bundled name, or a `SentenceTransformer`.
        seed: Seed of the weights that the files lack, such as a pooler head.

    Attributes:
        name: What the user gave, or the folder in which a loaded model was saved.
        config: Values of the transformers configuration.
        seed: As given.

    Raises:
        OpencseError: There is no such model.
    """

    def __init__(self, given: Any, *, seed: int = 0) -> None:
        self.name = model_source(given)
        self.source = resolve(self.name)
        self.config: dict[str, Any] = load_config(self.source).to_dict()
        self.seed = seed

    def __str__(self) -> str:
        return self.name

    def with_seed(self, seed: int) -> Backbone:
        """Return the model with another seed."""
        # With the same seed it is this one, whose weights may be read already.
        return self if seed == self.seed else Backbone(self.name, seed=seed)

    @cached_property
    def family(self) -> str:
        """The family of the model; `minilm`, whose settings keep the pooling, if it has its own."""
        if has_pooling(self.source):
            return "minilm"
        return family_of(self.config)

    @cached_property
    def device(self) -> torch.device:
        """The device of the copies."""
        return choose_device()

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the model, without any template."""
        return self.untouched.tokenizer

    def encoder(
        self,
        pooling: str = "backbone",
        *,
        prompt: str | None = None,
        final_mark: str = "",
        dropout: float | None = None,
    ) -> SentenceTransformer:
        """Return a copy of the untouched model with a pooling; arguments as for `load_encoder`."""
        pooling = chosen_pooling(self.name, self.source, pooling)
        if dropout is None:
            model = copy.deepcopy(self.untouched)
        else:
            # Built again, because a layer may have been built without dropout.
            model = self._opened(dropout)
        # A pooling may have new weights.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            model = pooled(self.name, model, pooling, prompt=prompt, final_mark=final_mark)
        return model.to(self.device)

    @cached_property
    def untouched(self) -> SentenceTransformer:
        """The model as it was read, which nothing may change; `encoder` copies it."""
        return self._opened()

    def _opened(self, dropout: float | None = None) -> SentenceTransformer:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return open_model(self.name, self.source, dropout=dropout)


def model_source(given: Any) -> str:
    """Return the name of a model; a loaded model is saved once to a folder in the cache.

    Args:
        given: A folder, a hub id, a bundled name, or a `SentenceTransformer`.

    Raises:
        OpencseError: The model is none of these.
    """
    if isinstance(given, str | Path):
        return str(given)
    from sentence_transformers import SentenceTransformer

    if not isinstance(given, SentenceTransformer):
        raise OpencseError(
            f"a model of the type {type(given).__name__} cannot be used",
            "Give a folder, a hub id, a bundled name or a SentenceTransformer.",
        )
    if getattr(getattr(given[0], "auto_model", None), "_hf_peft_config_loaded", False):
        raise OpencseError(
            "the model has an adapter (LoRA), which is no part of its weights",
            "Merge it into them first: merge_and_unload() of peft.",
        )
    # By its content: the same object, changed since, gets a folder of its own.
    base = given.model_card_data.base_model or "model"
    key = key_hash([weights_hash(given), dropout_rates(given)])
    folder = cache_place("inputs", key) / Path(str(base)).name
    if not (folder / "modules.json").is_file():
        head = "" if base == "model" else f"---\nbase_model: {base}\n---\n"
        save_encoder(given, folder, head)
    return str(folder)


# Settings that change the vectors without changing a weight. Few on purpose: a library update that
# adds keys to a configuration must not change the hash of an unchanged model. Those of the second
# list count only if they are set.
_CONFIG_KEYS = (
    "model_type",
    "num_attention_heads",
    "hidden_act",
    "layer_norm_eps",
    "position_embedding_type",
)
_WHERE_SET = (
    "is_causal",
    "rms_norm_eps",
    "norm_eps",
    "hidden_activation",
    "rope_parameters",
    "local_attention",
)


def weights_hash(model: SentenceTransformer) -> str:
    """Return the SHA-256 of a model: weights, tokenizer, and settings of its modules.

    It is the same after saving and loading, on any device, and changes with any weight, the
    vocabulary, the pooling, a prompt or the maximum length. Names, paths and library versions do
    not enter. An unused BERT-like pooler head is left out, because loading initialises it at random
    if the checkpoint has none.

    The time is linear in the size of the weights: about a tenth of a second for 100 MB.
    """
    digest = hashlib.sha256()
    for module in model:
        digest.update(f"module {type(module).__name__} {_settings(module)}\n".encode())
        headless = getattr(module, "module_output_name", None) == "token_embeddings"
        for name, tensor in sorted(module.state_dict().items()):
            if headless and ".pooler." in f".{name}":
                continue
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(content.numpy().data)
    digest.update(_tokenizer_definition(getattr(model, "tokenizer", None)).encode())
    model_settings = [
        model.max_seq_length,
        model.truncate_dim,
        model.default_prompt_name,
        sorted(model.prompts.items()),
    ]
    digest.update(json.dumps(model_settings).encode())
    return digest.hexdigest()


def pooling_name(model: SentenceTransformer) -> str:
    """Return the name of the pooling for tables: `mean`, `cls`, `mask`, `mean+cls`, … or `none`.

    A weighted mean of several layers comes first, as in `layers+mean`.
    """
    if any(pools_the_mask(module) for module in model):
        return "mask"
    names = []
    for module in model:
        mode = getattr(module, "pooling_mode", None)
        if mode is not None:
            names += [mode] if isinstance(mode, str) else list(mode)
        elif type(module).__name__ == "WeightedLayerPooling":
            names.append("layers")
    return "+".join(names) or "none"


def _settings(module: nn.Module) -> str:
    if type(module).__name__ == "Router":
        routes: Any = module
        inside = {
            name: [
                _settings(part) + _tokenizer_definition(getattr(part, "tokenizer", None))
                for part in route
            ]
            for name, route in routes.sub_modules.items()
        }
        return json.dumps([routes.get_config_dict(), inside], sort_keys=True, default=str)
    config = getattr(module, "config", None)
    if config is not None and hasattr(config, "model_type"):
        settings = {key: getattr(config, key, None) for key in _CONFIG_KEYS}
        for key in _WHERE_SET:
            value = getattr(config, key, None)
            if value is not None:
                settings[key] = value
        for key in ("processing_kwargs", "query_length", "document_length"):
            value = getattr(module, key, None)
            if value:
                settings[key] = value
    elif hasattr(module, "get_config_dict"):
        settings = cast(Any, module).get_config_dict()
    else:
        settings = {}
    return json.dumps(settings, sort_keys=True, default=str)


def _tokenizer_definition(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    if hasattr(backend, "to_str"):
        definition = json.loads(backend.to_str())
        # Its state after the last call.
        for key in ("truncation", "padding"):
            definition.pop(key, None)
        sides = str(getattr(tokenizer, "padding_side", ""))
        if getattr(tokenizer, "truncation_side", "right") == "left":
            sides += " cut on the left"
        return json.dumps(definition, sort_keys=True) + sides
    if hasattr(tokenizer, "get_vocab"):
        return json.dumps(tokenizer.get_vocab(), sort_keys=True, default=str)
    if tokenizer is None:
        return ""
    return type(tokenizer).__name__
