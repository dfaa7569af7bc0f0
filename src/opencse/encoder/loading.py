"""Loading of encoders as a `SentenceTransformer`; pooling, projectors, LoRA."""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from opencse.encoder.device import choose_device
from opencse.encoder.dropout import checkpoint_contexts, dropout_config_overrides, evaluation_mode
from opencse.encoder.folder_check import (
    check_model_folder,
    check_sizes,
    closed_folder,
    first_transformer,
    parts_of,
)
from opencse.encoder.invariant import tasks_of
from opencse.encoder.model_folder import check_loaded, has_pooling, quiet
from opencse.encoder.names import BUNDLED_POOLING, resolve
from opencse.encoder.packing import first_position
from opencse.encoder.prompts import MASK, add_earlier_mask, bake_template
from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.plugins import MODULES
from opencse.foundation.progress import note_once
from opencse.foundation.reading import error_reason

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense


def load_encoder(
    name: str | Path,
    *,
    pooling: str = "backbone",
    prompt: str | None = None,
    final_mark: str = "",
    dropout: float | None = None,
    device: str | torch.device | None = None,
) -> SentenceTransformer:
    """Load a backbone with its own pooling or another.

    Args:
        name: A folder, a hub id or a bundled name (`opencse.encoder.names.resolve`).
        pooling: `backbone` for the pooling of the model's folder (an error for a plain transformers
            encoder, which has none), or one of `POOLINGS`, which replaces all modules after the
            transformer.
        prompt: Template of `mask` pooling, which becomes part of the tokenizer.
        final_mark: With `mask` pooling, appended to texts without final punctuation
            (`Encoder.final_mark`).
        dropout: Dropout rate of the configuration; None for that of the model.
        device: Device of the weights; by default that of `opencse.encoder.device.choose_device`.

    Returns:
        The model in fp32, in training mode as sentence-transformers leaves it.

    Raises:
        OpencseError: There is no such model, it is not a text encoder, or pooling and model do not
            match.
    """
    source = resolve(name)
    pooling = chosen_pooling(name, source, pooling)
    model = open_model(name, source, dropout=dropout, device=device)
    return pooled(name, model, pooling, prompt=prompt, final_mark=final_mark)


def chosen_pooling(name: object, source: str, pooling: str) -> str:
    """Return the pooling of a model: the given one, or for `backbone` and a bundled encoder without one, its usual one.

    Raises:
        OpencseError: There is no such pooling, or the model defines none and is not a bundled one.
    """
    usual = BUNDLED_POOLING.get(str(name))
    if pooling == "backbone" and usual is not None:
        note_once(f"{name}: a plain encoder, which defines no pooling; {usual} pooling is used")
        return usual
    check_pooling(name, source, pooling)
    return pooling


def check_pooling(name: object, source: str, pooling: str) -> None:
    """Raise an `OpencseError` if there is no such pooling, or if a model has none of its own."""
    if pooling not in ("backbone", *POOLINGS):
        raise OpencseError(
            f"there is no pooling {pooling!r}", f"Choose one of: {', '.join(POOLINGS)}."
        )
    if pooling == "backbone" and not has_pooling(source):
        # An error if there is no such model.
        load_config(source)
        code = f"save_encoder(load_encoder({str(name)!r}, pooling='mean'), 'with-pooling')"
        raise OpencseError(
            f"{name}: a plain transformers encoder, which defines no pooling",
            f"Choose a pooling: {', '.join(POOLINGS)} (--pooling, or --set encoder.pooling=cls). "
            "For commands with neither of them, save the model with it: "
            f'`python -c "from opencse.encoder import load_encoder, save_encoder; {code}"`',
        )


def open_model(
    name: object,
    source: str,
    *,
    dropout: float | None = None,
    device: str | torch.device | None = None,
) -> SentenceTransformer:
    """Read a model from a folder or the hub, with the modules that it has there.

    A plug-in's module is the registered class; the copy of its file in the folder is not run.

    Args:
        name: Its name in messages.
        source: A folder or a hub id.
        dropout: As for `load_encoder`.
        device: As for `load_encoder`.
    """
    from sentence_transformers import SentenceTransformer

    folder = local_folder(name, source)
    check_before_loading(name, folder)
    settings: dict[str, float] = {}
    if dropout is not None:
        settings = dropout_config_overrides(load_config(source), dropout)
    if device is None:
        device = choose_device()
    with readable_errors(name), quiet(), closed_folder(folder):
        model = _opening_class()(
            str(folder),
            device=str(device),
            config_kwargs=settings or None,
            model_kwargs={"use_safetensors": True},
            local_files_only=True,
            trust_remote_code=False,
        )
        # The class was needed only to find the modules; a model should have the usual one.
        model.__class__ = SentenceTransformer
        # transformers keeps the precision of the file.
        model.float()
    if hasattr(model[0], "auto_model"):
        transformer: Any = model[0].auto_model
        _limit_length(name, model)
        with readable_errors(name):
            check_loaded(name, model, folder)
        if model.tokenizer.pad_token is None:
            # GPT-2 and its like have none, but batches need one, and so do users of the model.
            model.tokenizer.pad_token = model.tokenizer.eos_token
        classes = transformer.config.architectures or ()
        if any(name.endswith("ForSequenceClassification") for name in classes):
            note_once(
                f"{name}: a classifier or cross-encoder; its head is left out, and its vectors may "
                "mean little"
            )
    return model


def _limit_length(name: object, model: SentenceTransformer) -> None:
    """Lower the maximum length of texts to the positions that a model has, and report it."""
    transformer: Any = model[0].auto_model
    limit = position_limit(transformer)
    length = model.max_seq_length
    if limit is None or not isinstance(length, int | float):
        return
    # Not `length <= limit`: NaN is left to the check of the settings.
    if not length > limit:
        return
    model.max_seq_length = limit
    # sentence-transformers counts the positions that RoBERTa keeps for padding. That is no mistake
    # of the model's settings, which would be worth a note.
    if length > limit + _KEPT_FOR_PADDING:
        note_once(
            f"{name}: has positions for {limit} tokens: texts are cut there, not at {length:g}"
        )


# Positions that a table may have more than tokens: RoBERTa's has two.
_KEPT_FOR_PADDING = 8
# Files that are fetched from the hub: no pickled weights, and no code.
_READ = ("*.json", "*.txt", "*.model", "*.spm", "*.bpe", "*.jinja", "*.safetensors", "README.md")
_UNREAD = ("onnx/*", "openvino/*", "*checkpoint*/*")


def local_folder(name: object, source: str) -> Path:
    """Return the folder of a model; one on the hub is fetched, without pickled weights and code.

    Raises:
        OpencseError: The hub has no such model, or cannot be reached.
    """
    if os.path.isdir(source):
        return Path(source)
    from huggingface_hub import constants, snapshot_download

    with readable_errors(name), quiet():
        folder = snapshot_download(
            source,
            allow_patterns=list(_READ),
            ignore_patterns=list(_UNREAD),
            local_files_only=constants.HF_HUB_OFFLINE,
        )
    return Path(folder)


def check_before_loading(name: object, folder: Path) -> None:
    """Check a model's folder, and that its files hold what its configurations ask for.

    Raises:
        OpencseError: As `check_model_folder` and `check_sizes`.
    """
    from transformers import AutoConfig, AutoModel

    check_model_folder(folder)
    for part in parts_of(folder):
        if part.kind not in ("Transformer", "CLIPModel"):
            continue
        with readable_errors(name), quiet(), closed_folder(folder):
            config = AutoConfig.from_pretrained(part.folder, trust_remote_code=False)
            check_sizes(part.folder, lambda c=config: AutoModel.from_config(c))  # type: ignore[misc]


def position_limit(transformer: nn.Module) -> int | None:
    """Return how many tokens the position table of a transformer has room for; None if it has no table."""
    table: Any = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    if not isinstance(table, nn.Embedding):
        return None
    return table.num_embeddings - first_position(transformer)


def replace_modules(model: SentenceTransformer, modules: list[nn.Module]) -> SentenceTransformer:
    """Return a model with other modules and the settings of the given one: prompts, similarity and cut of the vectors."""
    from sentence_transformers import SentenceTransformer

    with quiet():
        return SentenceTransformer(
            modules=modules,
            device=str(model.device),
            prompts={name: prompt or "" for name, prompt in model.prompts.items()},
            default_prompt_name=model.default_prompt_name,
            similarity_fn_name=model.similarity_fn_name,
            truncate_dim=model.truncate_dim,
        )


def note_batch_dependence(name: object, model: SentenceTransformer) -> None:
    """Note it if a text has another vector next to a longer one: padded on the left, BERT counts positions from the edge."""
    if getattr(model.tokenizer, "padding_side", "right") != "left":
        return
    pair = ["a", "a b c d e f g h"]
    together = model.encode(pair, show_progress_bar=False)
    alone = model.encode(pair[:1], show_progress_bar=False)
    if abs(together[0] - alone[0]).max() > 1e-3:
        note_once(
            f"{name}: pads texts on the left but counts positions from the left edge, so a vector "
            "depends on the longest text of its batch; training and evaluation read texts without padding"
        )


@cache
def _opening_class() -> type[SentenceTransformer]:
    """Return the class of models that takes modules of plug-ins from their packages."""
    from sentence_transformers import SentenceTransformer

    class _Opening(SentenceTransformer):
        def _load_module_class_from_ref(self, class_ref: str, *args: Any, **kwargs: Any) -> type:
            if class_ref in MODULES:
                registered: type = MODULES[class_ref]
                return registered
            return super()._load_module_class_from_ref(class_ref, *args, **kwargs)

    return _Opening


def pooled(
    name: object, model: SentenceTransformer, pooling: str, *, prompt: str | None, final_mark: str
) -> SentenceTransformer:
    """Return a model with another pooling; arguments as for `load_encoder`."""
    if pooling == "backbone":
        _check_own_modules(name, model)
        for module in model:
            if pools_the_mask(module):
                module.requires_grad_(False)
        return model

    transformer: Any = model[0]
    if not hasattr(transformer, "auto_model"):
        raise OpencseError(
            f"{name}: its first module is a {type(transformer).__name__}, not a transformer"
        )
    if pooling == "cls" and _is_decoder(transformer):
        raise OpencseError(
            f"{name}: a decoder, whose first token is the same whatever follows",
            "Pool its last token (--pooling lasttoken, --set encoder.pooling=lasttoken).",
        )
    if pooling in _LAYER_MIXES:
        transformer.auto_model.config.output_hidden_states = True
    mask = None
    if pooling == "mask":
        if prompt is None:
            raise OpencseError("pooling 'mask' needs a prompt with {mask}")
        # The template replaces the tokenizer, and its copy has no mask token any more.
        mask = model.tokenizer.mask_token_id
        _bake_template(name, model, prompt, final_mark)
    modules = pooling_modules(pooling, transformer, mask)
    # A pooling that leaves a prompt's tokens out keeps doing so.
    former = next((module for module in model if hasattr(module, "include_prompt")), None)
    if former is not None:
        for module in modules:
            if hasattr(module, "include_prompt"):
                module.include_prompt = former.include_prompt
    return replace_modules(model, [transformer, *modules])


def _bake_template(
    name: object, model: SentenceTransformer, template: str, final_mark: str
) -> None:
    """Give a model a tokenizer that puts the template around every text, in place."""
    if model.default_prompt_name is not None:
        note_once(
            f"{name}: its default prompt {model.default_prompt_name!r} is replaced by the template"
        )
        model.default_prompt_name = None
    transformer: Any = model[0]
    mask = model.tokenizer.mask_token_id
    earlier = None
    if mask is not None and template.count(MASK) > 1:
        earlier = add_earlier_mask(transformer.auto_model, mask)
    tokenizer = bake_template(model.tokenizer, template, final_mark, earlier)
    tokenizer.model_max_length = model.max_seq_length or tokenizer.model_max_length
    transformer.processor = tokenizer


def _check_own_modules(name: object, model: SentenceTransformer) -> None:
    """Check that a model's modules fit together, and report prompts that are not used."""
    if model.default_prompt_name is None:
        prompts = ", ".join(key for key, prompt in model.prompts.items() if prompt)
        if prompts:
            note_once(
                f"{name}: has prompts ({prompts}), none of them the default: texts are encoded "
                "without"
            )
    if model.device.type == "meta":
        return
    # The settings do not show whether modules fit together, so a word is encoded.
    with readable_errors(name), evaluation_mode(model):
        vectors = model.encode(["a"], show_progress_bar=False, task=tasks_of(model)[0])
        note_batch_dependence(name, model)
        stated = model.get_embedding_dimension()
    if model.truncate_dim is None and stated not in (None, vectors.shape[1]):
        raise OpencseError(
            f"{name}: its settings say {stated} dimensions, but its vectors have "
            f"{vectors.shape[1]}",
            "Correct the settings of its modules.",
        )


def _is_decoder(transformer: Any) -> bool:
    """Return whether tokens see only those before them."""
    # GTE-Qwen2 switches its causal attention off here.
    if getattr(transformer.auto_model.config, "is_causal", True) is False:
        return False
    return any(getattr(module, "is_causal", False) for module in transformer.modules())


def load_masked_lm(name: str | Path) -> tuple[Any, Any]:
    """Load a masked language model and its tokenizer.

    Args:
        name: A folder, a hub id or a bundled name; the output folder of a finished run has no such
            model.

    Returns:
        The model in evaluation mode, and the tokenizer.

    Raises:
        OpencseError: There is no such model; its file has no masked-LM head (transformers would
            initialise a random one); or its tokenizer has no mask token or is a slow one.
    """
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM, AutoTokenizer

    source = resolve(name)
    config = load_config(source)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise OpencseError(
            f"{str(name)!r} is a {config.model_type}, no masked language model",
            "Choose a masked LM.",
        )
    folder = local_folder(name, source)
    check_before_loading(name, folder)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with readable_errors(name), quiet(), closed_folder(folder):
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, **options)
        model, report = AutoModelForMaskedLM.from_pretrained(
            folder, use_safetensors=True, output_loading_info=True, **options
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise OpencseError(
            f"{str(name)!r} has no masked-LM head (its file lacks {', '.join(missing[:3])})",
            "Pass a model that was saved with its masked-LM head.",
        )
    if tokenizer.mask_token_id is None or not tokenizer.is_fast:
        raise OpencseError(
            f"the tokenizer of {str(name)!r} has no mask token or is a slow one",
            "Choose a masked LM.",
        )
    return model.float().eval(), tokenizer


def load_config(source: str) -> Any:
    """Return the transformers configuration in a folder or on the hub."""
    from transformers import AutoConfig

    if not os.path.isdir(source):
        with readable_errors(source), quiet():
            return AutoConfig.from_pretrained(source, trust_remote_code=False)
    folder = Path(source)
    check_model_folder(folder)
    with readable_errors(source), quiet(), closed_folder(folder):
        return AutoConfig.from_pretrained(first_transformer(folder), trust_remote_code=False)


@contextlib.contextmanager
def readable_errors(name: object) -> Iterator[None]:
    """Turn errors of loading into one line with the model, the reason and a remedy."""
    try:
        yield
    except OpencseError:
        raise
    # Three libraries and their parsers have no common error class, and a panic of the tokenizers
    # library is not even an Exception.
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise OpencseError(
            f"{name}: the model cannot be loaded ({error_reason(error)})",
            "Pass the folder of the model, or check the hub id and the network (HF_HUB_OFFLINE=1 "
            "uses the cache only).",
        ) from error


# Poolings of the mean of two layers.
_LAYER_MIXES = ("first_last", "embeddings_last", "last_two")
POOLINGS = ("cls", "mean", "lasttoken", *_LAYER_MIXES, "mask", "ngrams")

# Tokens that each convolution of `ngrams` pooling sees at a time ...
_NGRAMS = (1, 3, 5)
# ... and the numbers that it gives for each token.
_CHANNELS = 256


def pooling_modules(kind: str, transformer: Any, mask: int | None = None) -> list[torch.nn.Module]:
    """Return the sentence-transformers modules for a pooling, which follow the transformer.

    Args:
        kind: `cls`, `mean`, `lasttoken` (for decoders), `first_last` (the mean over tokens of the
            mean of the first and the last layer's output, as in SimCSE's evaluation since 2024),
            `embeddings_last` (the same with the embeddings in place of the first layer, as in the
            papers' tables), `last_two` (the same of the last two layers, ConSERT), `mask`: the
            mean over tokens, in which only the mask token has a weight; or `ngrams`: the mean over
            tokens of new convolutions, which have to be trained (IS-BERT).
        transformer: The `Transformer` module; `first_last` needs `output_hidden_states` in its
            configuration.
        mask: Id of the mask token, for `mask`.
    """
    from sentence_transformers.sentence_transformer.modules import (
        CNN,
        Pooling,
        WeightedLayerPooling,
        WordWeights,
    )

    width = transformer.get_embedding_dimension()
    if kind in _LAYER_MIXES:
        layers = transformer.config.num_hidden_layers
        # Layer 0 is the output of the embeddings.
        start = {"embeddings_last": 0, "first_last": 1, "last_two": layers - 1}[kind]
        mix = WeightedLayerPooling(width, num_hidden_layers=layers, layer_start=start)
        weights = torch.zeros(layers + 1 - start)
        weights[0] = 1.0
        weights[-1] = 1.0
        mix.layer_weights.data.copy_(weights)
        mix.layer_weights.requires_grad_(False)
        return [mix, Pooling(width, "mean")]
    if kind == "mask":
        # The words are ids: only their number and the weights matter.
        ids = [str(i) for i in range(transformer.config.vocab_size)]
        only_mask = WordWeights(ids, {str(mask): 1.0}, unknown_word_weight=0.0)
        return [only_mask.requires_grad_(False), Pooling(width, "mean")]
    if kind == "ngrams":
        # With the weight 1 for every token, padding becomes 0. Otherwise the convolutions would
        # read the states of padding, and a vector would depend on the longest text of its batch.
        ids = [str(i) for i in range(transformer.config.vocab_size)]
        only_text = WordWeights(ids, {}, unknown_word_weight=1.0)
        convolutions = CNN(width, out_channels=_CHANNELS, kernel_sizes=list(_NGRAMS))
        total = convolutions.get_embedding_dimension()
        return [only_text.requires_grad_(False), convolutions, Pooling(total, "mean")]
    return [Pooling(width, kind)]


def pools_the_mask(module: torch.nn.Module) -> bool:
    """Return whether a module is the word weighting of `mask` pooling: one id has a weight."""
    weight = getattr(getattr(module, "emb_layer", None), "weight", None)
    if type(module).__name__ != "WordWeights" or weight is None:
        return False
    return int((weight != 0).sum()) == 1


def build_projector(kind: str, width: int, pooler: nn.Module | None = None) -> nn.Module:
    """Return a new projector from (rows, width) to (rows, width).

    Args:
        kind: `none`; `simcse`, Linear + Tanh (SimCSE §3, `mlp_only_train`); or `diffcse`, two
            layers with BatchNorm over all rows of all views together (DiffCSE §3 and its code),
            which needs at least two rows; `pooler`, a copy of the backbone's pooler; or
            `pooler_simcse`, that copy and then `simcse`.
        width: Size of the sentence vector.
        pooler: The backbone's pooler, with a linear layer `dense`; without one, a copy starts as a
            new layer.
    """
    if kind == "none":
        return nn.Identity()
    if kind in ("simcse", "pooler"):
        layers = nn.Sequential(nn.Linear(width, width), nn.Tanh())
    elif kind == "pooler_simcse":
        layers = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
    else:
        layers = nn.Sequential(
            nn.Linear(width, 2 * width, bias=False),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.Linear(2 * width, width, bias=False),
            nn.BatchNorm1d(width, affine=False),
        )
    _initialise(layers)
    dense = getattr(pooler, "dense", None)
    if kind in ("pooler", "pooler_simcse") and dense is not None:
        layers[0].load_state_dict(dense.state_dict())
    return layers


def exported_projector(width: int) -> Dense:
    """Return the `simcse` projector as a sentence-transformers module, saved with the encoder."""
    from sentence_transformers.sentence_transformer.modules import Dense

    dense = Dense(width, width, activation_function=nn.Tanh())
    _initialise(dense)
    return dense


def attending_padding(encoder: SentenceTransformer, projector: nn.Module) -> SentenceTransformer:
    """Return an encoder that shares all weights, attends to padding, and ends with the projector's pooler.

    Its vectors are those of DCLR's evaluation during training.

    Args:
        encoder: An encoder with `cls` pooling.
        projector: A projector that begins with a pooler.
    """
    from sentence_transformers import SentenceTransformer

    # A shallow copy, which shares the weights.
    first: Any = copy.copy(encoder[0])
    first.__class__ = _attending_class()
    rest = list(encoder.children())[1:]
    layers: Any = projector
    modules = [first, *rest, _PoolerOutput(layers[0])]
    return SentenceTransformer(modules=modules, device=str(encoder.device))


@cache
def _attending_class() -> type[nn.Module]:
    from sentence_transformers.sentence_transformer.modules import Transformer

    class _AttendingTransformer(Transformer):
        """A transformer that takes padding for text."""

        attends_padding = True

        def forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
            mask = torch.ones_like(features["attention_mask"])
            return super().forward(features | {"attention_mask": mask}, **options)

    return _AttendingTransformer


def attends_to_padding(encoder: SentenceTransformer) -> bool:
    """Return whether a vector depends on the padding of its batch: see `attending_padding`."""
    return bool(getattr(encoder[0], "attends_padding", False))


class _PoolerOutput(nn.Module):
    """The pooler as the last module of an encoder."""

    def __init__(self, dense: nn.Linear) -> None:
        super().__init__()
        # In a tuple, because it is a part of the projector, not of this module.
        self._dense = (dense,)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        vectors = self._dense[0](features["sentence_embedding"]).tanh()
        return features | {"sentence_embedding": vectors}


def load_with_pooler(name: str | Path) -> tuple[nn.Module, Any]:
    """Load a transformer with its pooler, and its tokenizer.

    Args:
        name: A folder, a hub id or a bundled name.

    Returns:
        The model, from `input_ids` and `attention_mask` to `pooler_output`, and the tokenizer. A
        pooler that the folder lacks is a new one.

    Raises:
        OpencseError: There is no such model, or its class has no pooler.
    """
    model = open_model(name, resolve(name))
    transformer: Any = getattr(model[0], "auto_model", None)
    if getattr(getattr(transformer, "pooler", None), "dense", None) is None:
        raise OpencseError(
            f"{str(name)!r} has no pooler like BERT's", "Choose a BERT or RoBERTa model."
        )
    return transformer, model.tokenizer


def _initialise(network: nn.Module) -> None:
    """Give new layers the weights that BERT begins with."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def add_lora(transformer: nn.Module, rank: int, alpha: int | None, dropout: float) -> Any:
    """Put adapters into a transformer in place and freeze the rest; arguments as in `Lora`.

    Returns:
        An object whose `merge_and_unload` adds the adapters to the weights, in place.

    Raises:
        OpencseError: `peft` is not installed.
    """
    peft = imported("peft", "lora")
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha or 2 * rank, lora_dropout=dropout, target_modules="all-linear"
    )
    return peft.LoraModel(transformer, config, "default")


def keep_inputs_only(transformer: Any, encoder: nn.Module, name: str) -> None:
    """Compute the layers of a transformer again for the gradient, to save memory.

    This is `Training.gradient_checkpointing` of a recipe.

    Raises:
        OpencseError: Its class does not support that.
    """
    settings = {"use_reentrant": False, "context_fn": checkpoint_contexts(encoder)}
    try:
        # transformers 5.2x warns that it renames the method.
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            transformer.gradient_checkpointing_enable(settings)
    except ValueError as error:
        raise OpencseError(
            f"{name}: a {type(transformer).__name__} cannot do gradient checkpointing",
            "Set training.micro_batch instead.",
        ) from error
