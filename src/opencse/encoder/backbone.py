"""The model that a run begins with, opened once and handed on, and the hash that identifies a model.

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
from tokenizers import Tokenizer
from torch import nn

from opencse.debias.meaning_block import MeaningBlock, block_of
from opencse.encoder.device import choose_device
from opencse.encoder.dropout import dropout_rates
from opencse.encoder.loading import check_pooling, load_config, open_model, pooled, pools_the_mask
from opencse.encoder.model_folder import has_pooling
from opencse.encoder.names import family_of, is_installed, resolve
from opencse.encoder.saving import save_encoder
from opencse.foundation.cache import cache_place, key_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS, read_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Backbone:
    """A model to start from: its configuration is read at once, its weights once, when they are first needed.

    Args:
        given: A folder, a hub id, a bundled name, or a `SentenceTransformer`.

    Attributes:
        name: What the user gave, or the folder in which a loaded model was saved.
        config: Values of the transformers configuration.
        seed: Seed of the weights that the files lack, such as a pooler head.
        english: Whether the text is English, which a block of another model needs.

    Raises:
        OpencseError: There is no such model.
    """

    def __init__(self, given: Any) -> None:
        self.name = model_source(given)
        self.source = resolve(self.name)
        self.config: dict[str, Any] = load_config(self.source).to_dict()
        self.seed = 0
        self.english = True

    def __str__(self) -> str:
        return self.name

    @cached_property
    def family(self) -> str:
        """The family of the model; `minilm`, whose settings keep the pooling, for all that have one of their own."""
        return "minilm" if has_pooling(self.source) else family_of(self.config)

    @cached_property
    def device(self) -> torch.device:
        """The device of the copies."""
        return choose_device()

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the model, without any template."""
        return self._untouched.tokenizer

    @cached_property
    def block(self) -> MeaningBlock | None:
        """The trained meaning block of this model: its own, or the one that comes with the package."""
        return block_of(self._untouched) or shipped_block(self._untouched, english=self.english)[0]

    def encoder(
        self,
        pooling: str = "backbone",
        *,
        prompt: str | None = None,
        final_mark: str = "",
        dropout: float | None = None,
    ) -> SentenceTransformer:
        """Return a copy of the untouched model with a pooling; the arguments are those of `load_encoder`."""
        check_pooling(self.name, self.source, pooling)
        # With another rate it is built anew: a layer may have been built without dropout.
        model = copy.deepcopy(self._untouched) if dropout is None else self._opened(dropout)
        return pooled(self.name, model, pooling, prompt=prompt, final_mark=final_mark).to(
            self.device
        )

    @cached_property
    def _untouched(self) -> SentenceTransformer:
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
    base = given.model_card_data.base_model or "model"
    folder = (
        cache_place("inputs", key_hash([weights_hash(given), dropout_rates(given)]))
        / Path(str(base)).name
    )
    if not (folder / "modules.json").is_file():
        head = "" if base == "model" else f"---\nbase_model: {base}\n---\n"
        save_encoder(given, folder, head)
    return str(folder)


BLOCKS = ASSETS / "meaning-block"
MEASURED = "measured.json"
"""File beside a block's own: name and key of the model that it was trained for, and its scores by strength."""
_TRIAL = "A naïve user's 3.5-km UNFORGETTABLE état_of_the-art isn't #1!"
_MARKS = ("cls", "sep", "pad", "unk", "mask")


def block_key(model: SentenceTransformer) -> str:
    """Return the SHA-256 of the parameters of a model and of its pooling: what a block depends on.

    Unlike `weights_hash`, it does not depend on how a library writes tokenizers.
    """
    digest = hashlib.sha256(pooling_name(model).encode())
    for name, tensor in sorted(model.named_parameters()):
        if ".pooler." not in name:
            digest.update(f"{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().float().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def shipped_block(
    model: SentenceTransformer, *, english: bool = True
) -> tuple[MeaningBlock | None, dict[str, Any]]:
    """Return the block that comes with the package for a model, and what is known of it (`MEASURED`).

    It was trained for this model, or for another one: that one then comes with it, and its scores
    are not known. It reads the same tokens as this model, or, if `english`, the text that this
    model's tokens are put together to. None if neither can be, if the package of the model that
    would read is not installed, or if the model has a block.
    """
    for path in sorted(BLOCKS.glob(f"*/{MEASURED}")) if block_of(model) is None else ():
        measured, block = read_json(path), MeaningBlock.load(str(path.parent))
        if measured["beside"] == block_key(model):
            return block, measured
        width = model.get_embedding_dimension() or 0
        fits = width >= block.config["width"] and getattr(model.tokenizer, "is_fast", False)
        if fits and is_installed(measured["model"]):
            reader = open_model(measured["model"], resolve(measured["model"]), device="cpu")
            cut: Any = same_tokens(model.tokenizer, reader.tokenizer)
            if cut is None and english:
                cut = both_tokenizers(model.tokenizer, reader.tokenizer)
            if cut is not None:
                prompts = sorted(filter(None, model.prompts.values()), key=len, reverse=True)
                block = block.beside_another(cast(Any, reader[0]).auto_model, width, cut, prompts)
                return block, {key: value for key, value in measured.items() if key != "curve"}
    return None, {}


def same_tokens(tokenizer: Any, reader: Any) -> torch.Tensor | None:
    """Return a reader's number of each token of another tokenizer, (tokens,); None if they cut texts differently."""
    own, known = tokenizer.get_vocab(), reader.get_vocab()
    special = {
        token for token in known if token.startswith("[") and token.endswith("]")
    }  # and unused ones
    if not known.keys() - special <= own.keys() or tokenizer.tokenize(_TRIAL) != reader.tokenize(
        _TRIAL
    ):
        return None
    found = torch.full((max(own.values()) + 1,), reader.unk_token_id)
    for token, place in own.items():
        found[place] = known.get(token, reader.unk_token_id)
    for mark in _MARKS:
        if (place := getattr(tokenizer, f"{mark}_token_id")) is not None:
            found[place] = getattr(reader, f"{mark}_token_id")
    return found


def both_tokenizers(tokenizer: Any, reader: Any) -> tuple[Tokenizer, Tokenizer] | None:
    """Return the tokenizers by which a reader reads the tokens of another model; None if texts don't come back."""
    own, its = (Tokenizer.from_str(each.backend_tokenizer.to_str()) for each in (tokenizer, reader))
    its.enable_truncation(reader.model_max_length)
    its.enable_padding(pad_id=reader.pad_token_id, pad_token=reader.pad_token)
    same = its.encode(own.decode(own.encode(_TRIAL).ids)).ids == its.encode(_TRIAL).ids
    return (own, its) if same else None


def append_block(model: SentenceTransformer, block: MeaningBlock) -> None:
    """Append a block to the modules of a model whose first one is a transformer."""
    first: Any = model[0]
    first.auto_model.config.output_hidden_states |= block.reader is None
    model.append(block.to(model.device))


# Settings that change the vectors without changing a weight. Few on purpose: a library update that
# adds keys to a configuration must not change the hash of an unchanged model. The second ones count
# where they are set.
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
    """Return the SHA-256 of the weights and the tokenizer of a model, and the settings of its modules.

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
            if not (headless and ".pooler." in f".{name}"):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(
                    tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
                )
    digest.update(_tokenizer_definition(getattr(model, "tokenizer", None)).encode())
    whole = [
        model.max_seq_length,
        model.truncate_dim,
        model.default_prompt_name,
        sorted(model.prompts.items()),
    ]
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
    config = getattr(module, "config", None)
    if config is not None and hasattr(config, "model_type"):
        settings = {key: getattr(config, key, None) for key in _CONFIG_KEYS}
        settings |= {
            key: value for key in _WHERE_SET if (value := getattr(config, key, None)) is not None
        }
    elif hasattr(module, "get_config_dict"):
        settings = cast(Any, module).get_config_dict()
    else:
        settings = {}
    return json.dumps(settings, sort_keys=True, default=str)


def _tokenizer_definition(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    if hasattr(backend, "to_str"):
        definition = json.loads(backend.to_str())
        for key in ("truncation", "padding"):  # its state after the last call
            definition.pop(key, None)
        return json.dumps(definition, sort_keys=True) + str(getattr(tokenizer, "padding_side", ""))
    if hasattr(tokenizer, "get_vocab"):
        return json.dumps(tokenizer.get_vocab(), sort_keys=True, default=str)
    return "" if tokenizer is None else type(tokenizer).__name__
