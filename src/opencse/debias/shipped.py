"""The meaning blocks that come with the package, and the models that they can stand next to."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import torch
from tokenizers import Tokenizer

from opencse.debias.meaning_block import MeaningBlock, block_of
from opencse.encoder.backbone import Backbone, pooling_name
from opencse.encoder.loading import open_model
from opencse.encoder.names import is_installed, resolve
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS, read_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BLOCKS = ASSETS / "meaning-block"
MEASURED = "measured.json"
"""File next to a block's own: name and key of the model that it was trained for, and its scores by strength."""
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


def encoding_settings(model: SentenceTransformer) -> dict[str, Any]:
    """Return all settings that change a vector, other than the parameters, as JSON types.

    Scores that come with a block hold for a model with the same parameters (`block_key`) and these
    settings. Tokenizers are compared by how they cut a difficult text, because libraries write them
    in different forms.
    """
    tokenizer: Any = model.tokenizer
    first: Any = model[0]
    return {
        "modules": [type(module).__name__ for module in model],
        "pooling": pooling_name(model),
        "prompt in pooling": all(getattr(module, "include_prompt", True) for module in model),
        "maximum length": model.max_seq_length,
        "dimensions": model.truncate_dim,
        "prompts": {name: prompt for name, prompt in sorted(model.prompts.items()) if prompt},
        "default prompt": model.default_prompt_name,
        "processing": getattr(first, "processing_kwargs", None) or {},
        "query length": getattr(first, "query_length", None),
        "document length": getattr(first, "document_length", None),
        "truncation": getattr(tokenizer, "truncation_side", None),
        "tokens": tokenizer(_TRIAL)["input_ids"],
    }


def shipped_block(
    model: SentenceTransformer, *, english: bool = True
) -> tuple[MeaningBlock | None, dict[str, Any]]:
    """Return the block that comes with the package for a model, and what is known of it (`MEASURED`).

    It was trained for this model, or for another one: that one then comes with it, and its scores
    are not known. It reads the same tokens as this model, or, if `english`, the text that this
    model's tokens are put together to. None if neither can be, if the package of the model that
    would read is not installed, or if the model has a block.
    """
    if block_of(model) is not None:
        return None, {}
    for path in sorted(BLOCKS.glob(f"*/{MEASURED}")):
        measured = read_json(path)
        block = MeaningBlock.load(str(path.parent))
        # Of a model with other settings, or of another model, the scores are not known.
        without_scores = {key: value for key, value in measured.items() if key != "curve"}
        if measured["beside"] == block_key(model):
            if measured.get("settings") == encoding_settings(model):
                return block, measured
            return block, without_scores
        adapted = _for_another(model, block, measured["model"], english=english)
        if adapted is not None:
            return adapted, without_scores
    return None, {}


def _for_another(
    model: SentenceTransformer, block: MeaningBlock, trained_for: str, *, english: bool
) -> MeaningBlock | None:
    """Return a block for another model than it was trained for, which comes with it; None if it cannot be."""
    width = model.get_embedding_dimension() or 0
    fits = width >= block.config["width"] and getattr(model.tokenizer, "is_fast", False)
    if not fits or not is_installed(trained_for):
        return None
    reader = open_model(trained_for, resolve(trained_for), device="cpu")
    cut: Any = same_tokens(model.tokenizer, reader.tokenizer)
    if cut is None and english:
        cut = both_tokenizers(model.tokenizer, reader.tokenizer)
    if cut is None:
        return None
    # The longest first: one prompt may begin with another.
    prompts = sorted(filter(None, model.prompts.values()), key=len, reverse=True)
    return block.beside_another(cast(Any, reader[0]).auto_model, width, cut, prompts)


def same_tokens(tokenizer: Any, reader: Any) -> torch.Tensor | None:
    """Return a reader's number of each token of another tokenizer, (tokens,); None if they cut texts differently."""
    own = tokenizer.get_vocab()
    known = reader.get_vocab()
    # Special tokens, and those that BERT keeps for later use: `[unused1]`.
    special = {token for token in known if token.startswith("[") and token.endswith("]")}
    all_known = known.keys() - special <= own.keys()
    if not all_known or tokenizer.tokenize(_TRIAL) != reader.tokenize(_TRIAL):
        return None
    found = torch.full((max(own.values()) + 1,), reader.unk_token_id)
    for token, place in own.items():
        found[place] = known.get(token, reader.unk_token_id)
    for mark in _MARKS:
        place = getattr(tokenizer, f"{mark}_token_id")
        if place is not None:
            found[place] = getattr(reader, f"{mark}_token_id")
    return found


def both_tokenizers(tokenizer: Any, reader: Any) -> tuple[Tokenizer, Tokenizer] | None:
    """Return the tokenizers by which a reader reads the tokens of another model; None if texts don't come back."""
    # Copies, because truncation and padding are settings of the tokenizer itself.
    own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    its = Tokenizer.from_str(reader.backend_tokenizer.to_str())
    its.enable_truncation(reader.model_max_length)
    its.enable_padding(pad_id=reader.pad_token_id, pad_token=reader.pad_token)
    same = its.encode(own.decode(own.encode(_TRIAL).ids)).ids == its.encode(_TRIAL).ids
    if not same:
        return None
    return own, its


def append_block(model: SentenceTransformer, block: MeaningBlock) -> None:
    """Append a block to the modules of a model whose first one is a transformer."""
    require_whole_vectors(model)
    first: Any = model[0]
    first.auto_model.config.output_hidden_states |= block.reader is None
    model.append(block.round_to_half().to(model.device))


def require_whole_vectors(model: SentenceTransformer) -> None:
    """Check that a model does not cut its vectors, which would cut the meaning vector off.

    Raises:
        OpencseError: Its settings have a `truncate_dim`.
    """
    if model.truncate_dim is not None:
        raise OpencseError(
            f"the model's settings cut its vectors to {model.truncate_dim} numbers (truncate_dim), "
            "which would cut the meaning vector off",
            "Remove truncate_dim from its config_sentence_transformers.json, or pass "
            "SentenceTransformer(NAME, truncate_dim=None) from Python.",
        )


# Loading a block may load a second model, so the block of a backbone is found only once.
_found: WeakKeyDictionary[Backbone, dict[bool, MeaningBlock | None]] = WeakKeyDictionary()


def trained_block(backbone: Backbone, *, english: bool) -> MeaningBlock | None:
    """Return the trained meaning block of a model: its own, or the one that comes with the package.

    Args:
        backbone: The model.
        english: Whether the text is English, which a block of another model needs.
    """
    known = _found.setdefault(backbone, {})
    if english not in known:
        block = block_of(backbone.untouched)
        if block is None:
            block = shipped_block(backbone.untouched, english=english)[0]
        known[english] = block
    return known[english]
