"""Hash of a model for the keys of caches and result files, because names collide."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from opencse.encoder.pooling import pools_the_mask

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Settings that change the vectors without changing a weight. Few on purpose: a library update that adds keys to a
# configuration must not change the hash of an unchanged model.
_CONFIG_KEYS = ("model_type", "num_attention_heads", "hidden_act", "layer_norm_eps", "position_embedding_type")
# The tokenizer's state after its last call, not its definition.
_TOKENIZER_STATE = ("truncation", "padding")


def weights_hash(model: SentenceTransformer) -> str:
    """Return the SHA-256 of the weights and the tokenizer of a model, and the settings of its modules.

    It is the same after saving and loading, on any device, and changes with any weight, the vocabulary, the pooling, a
    prompt or the maximum length. Names, paths and library versions do not enter. An unused BERT-like pooler head is
    left out, because loading initialises it at random if the checkpoint has none.

    The time is linear in the size of the weights: about a tenth of a second for 100 MB.
    """
    digest = hashlib.sha256()
    for module in model:
        digest.update(f"module {type(module).__name__} {_settings(module)}\n".encode())
        unused = _unused_head(module)
        for name, tensor in sorted(module.state_dict().items()):
            if not (unused and unused in f".{name}"):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(_bytes(tensor))
    digest.update(_tokenizer_definition(getattr(model, "tokenizer", None)).encode())
    whole = [model.max_seq_length, model.truncate_dim, model.default_prompt_name, sorted(model.prompts.items())]
    digest.update(json.dumps(whole).encode())
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
    """Return the settings of a module that affect its output, as sorted JSON."""
    config = getattr(module, "config", None)
    if config is not None and hasattr(config, "model_type"):
        settings = {key: getattr(config, key, None) for key in _CONFIG_KEYS}
    elif hasattr(module, "get_config_dict"):
        settings = cast(Any, module).get_config_dict()
    else:
        settings = {}
    return json.dumps(settings, sort_keys=True, default=str)


def _unused_head(module: nn.Module) -> str | None:
    """Return the common part of the parameter names of an unused pooler, if there is one."""
    return ".pooler." if getattr(module, "module_output_name", None) == "token_embeddings" else None


def _bytes(tensor: Tensor) -> memoryview:
    """Return the memory of a tensor, without a copy if it is on the CPU."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _tokenizer_definition(tokenizer: Any) -> str:
    """Return a text that determines the behaviour of a tokenizer."""
    backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    if hasattr(backend, "to_str"):
        definition = json.loads(backend.to_str())
        for key in _TOKENIZER_STATE:
            definition.pop(key, None)
        return json.dumps(definition, sort_keys=True) + str(getattr(tokenizer, "padding_side", ""))
    if hasattr(tokenizer, "get_vocab"):
        return json.dumps(tokenizer.get_vocab(), sort_keys=True, default=str)
    return "" if tokenizer is None else type(tokenizer).__name__
