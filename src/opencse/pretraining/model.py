"""Creating, loading and saving masked language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from opencse.encoder.loading import is_sentence_transformer, readable_errors
from opencse.encoder.model_folder import require_finite, transformer_folder
from opencse.errors import OpencseError
from opencse.io.files import replaced_folder
from opencse.models import resolve
from opencse.models.quiet import quiet
from opencse.pretraining.settings import ModelSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def new_model(settings: ModelSettings, tokenizer: Any) -> Any:
    """Return a BERT with random weights (drawn from PyTorch's global generator) and tied word embeddings."""
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
    """Return the tokenizer of a model (folder, hub id or bundled name), or of a folder with a tokenizer only."""
    from transformers import AutoTokenizer

    tokenizer_only = (Path(name) / "tokenizer.json").is_file()
    source = str(name) if tokenizer_only else _transformer_folder(resolve(name))
    with readable_errors(name), quiet():
        return AutoTokenizer.from_pretrained(source, local_files_only=Path(source).is_dir())


def load_model(name: str | Path) -> tuple[Any, bool]:
    """Load a model with its masked-LM head, in fp32; a missing head is initialised near the identity.

    The new head maps hidden states to themselves, so that it first predicts the words whose (tied) embeddings are
    nearest to the output of the encoder.

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
    missing_weights = sorted(k for k in missing if k.startswith(base) and "pooler" not in k and "position_ids" not in k)
    if missing_weights:
        raise OpencseError(
            f"{name}: its weights lack {missing_weights[0]} and {len(missing_weights) - 1} more",
            "Pass a complete model.",
        )
    new_head = any(not k.startswith(base) for k in missing)
    if new_head:
        _initialise_head(model, missing)
    return model, new_head


@torch.no_grad()
def _initialise_head(model: Any, missing: set[str]) -> None:
    table = model.get_input_embeddings().weight
    for name, parameter in model.named_parameters():
        if name not in missing or parameter is table:
            continue
        if parameter.ndim == 2 and parameter.shape[0] == parameter.shape[1]:
            parameter.copy_(torch.eye(len(parameter)))
        elif parameter.ndim == 1:
            parameter.fill_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0)


@torch.no_grad()
def set_output_bias(model: Any, counts: np.ndarray) -> None:
    """Set the output bias to the log-probability of each piece, by its count in a corpus, (vocabulary,)."""
    bias = getattr(model.get_output_embeddings(), "bias", None)
    if bias is not None:
        shares = np.log((counts + 0.5) / (counts.sum() + 0.5 * len(counts)))
        bias.copy_(torch.from_numpy(shares))


def save_model(model: Any, tokenizer: Any, folder: Path, card: str, backbone: str | Path | None = None) -> None:
    """Write a folder that transformers and sentence-transformers load, atomically.

    Args:
        model: The model with its head.
        tokenizer: Its tokenizer.
        folder: The folder; an existing one is replaced.
        card: The text of `README.md`.
        backbone: The initial model; pooling and prompts of a sentence-transformers model are kept.
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
            backend.no_truncation()  # the state of its last call, which transformers would save
        tokenizer.save_pretrained(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace")


def _sentence_transformer(source: str) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source, device="cpu")


def _transformer_folder(source: str) -> str:
    """Return the transformer's folder in a sentence-transformers folder; other folders and hub ids unchanged."""
    modules = Path(source) / "modules.json"
    if not modules.is_file():
        return source
    return str(transformer_folder(Path(source)))
