"""New masked language models, given ones to train further, and saving either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from opencse.encoder.loading import is_sentence_transformer, quiet, readable_errors
from opencse.encoder.model_folder import require_finite, transformer_folder
from opencse.errors import OpencseError
from opencse.io.files import replaced_folder
from opencse.models import resolve
from opencse.pretraining.settings import Model

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def new_model(settings: Model, tokenizer: Any) -> Any:
    """A BERT with random weights (drawn from PyTorch's global generator) and tied word embeddings."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.positions,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForMaskedLM(config)


def load_tokenizer(name: str | Path) -> Any:
    """The tokenizer of a model, by folder, hub id or bundled name; or of a folder that holds a tokenizer alone."""
    from transformers import AutoTokenizer

    alone = (Path(name) / "tokenizer.json").is_file()
    source = str(name) if alone else _transformer_folder(resolve(name))
    with readable_errors(name), quiet():
        return AutoTokenizer.from_pretrained(source, local_files_only=Path(source).is_dir())


def load_model(name: str | Path) -> tuple[Any, bool]:
    """Load a model with its masked-LM head, in fp32; one without a head gets one that starts near the identity.

    The new head maps hidden states to themselves, so that its first guesses are the words whose (tied) embeddings are
    nearest to the encoder's output.

    Returns:
        The model, and whether its head is new.

    Raises:
        OpencseError: There is no such model, or its architecture has no masked-LM head.
    """
    from transformers import AutoModelForMaskedLM

    source = _transformer_folder(resolve(name))
    with readable_errors(name), quiet():
        model, info = AutoModelForMaskedLM.from_pretrained(
            source, local_files_only=Path(source).is_dir(), output_loading_info=True, dtype=torch.float32
        )
    missing = set(info["missing_keys"])
    base = f"{model.base_model_prefix}."
    lost = sorted(k for k in missing if k.startswith(base) and "pooler" not in k and "position_ids" not in k)
    if lost:
        raise OpencseError(f"{name}: its weights lack {lost[0]} and {len(lost) - 1} more", "Pass a complete model.")
    new_head = any(not k.startswith(base) for k in missing)
    if new_head:
        _start_head(model, missing)
    return model, new_head


@torch.no_grad()
def _start_head(model: Any, missing: set[str]) -> None:
    table = model.get_input_embeddings().weight
    for name, parameter in model.named_parameters():
        if name not in missing or parameter is table:
            continue
        if parameter.ndim == 2 and parameter.shape[0] == parameter.shape[1]:
            parameter.copy_(torch.eye(len(parameter)))
        elif parameter.ndim == 1:
            parameter.fill_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0)


@torch.no_grad()
def set_frequencies(model: Any, counts: np.ndarray) -> None:
    """Set the output bias to the log-probability of each piece, by its count in a corpus, (vocabulary,)."""
    bias = getattr(model.get_output_embeddings(), "bias", None)
    if bias is not None:
        shares = np.log((counts + 0.5) / (counts.sum() + 0.5 * len(counts)))
        bias.copy_(torch.from_numpy(shares))


def save_model(model: Any, tokenizer: Any, folder: Path, card: str, backbone: str | Path | None = None) -> None:
    """Write a folder that transformers and sentence-transformers load; it appears whole or not at all.

    Args:
        model: With its head.
        tokenizer: Its tokenizer.
        folder: Where to write; what is there is replaced.
        card: The text of `README.md`.
        backbone: What training began with: pooling and prompts of a sentence-transformers model are taken over.
    """
    require_finite(model, "the trained model")
    source = None if backbone is None else resolve(backbone)
    with replaced_folder(folder) as temporary, quiet():
        if source is not None and is_sentence_transformer(source):
            _sentence_transformer(source).save_pretrained(str(temporary), create_model_card=False)
            for stale in temporary.glob("*.safetensors"):
                stale.unlink()
        model.save_pretrained(temporary)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()  # the state of its last call, which transformers would save with it
        tokenizer.save_pretrained(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace")


def _sentence_transformer(source: str) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source, device="cpu")


def _transformer_folder(source: str) -> str:
    """Where the transformer of a sentence-transformers folder lies; other folders and hub ids as they are."""
    modules = Path(source) / "modules.json"
    if not modules.is_file():
        return source
    return str(transformer_folder(Path(source)))
