"""Export of a trained encoder as a folder of core sentence-transformers modules."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.model_folder import require_finite
from opencse.encoder.quiet import quiet
from opencse.foundation.files import replaced_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def save_encoder(model: SentenceTransformer, folder: str | Path, card: str | None = None) -> None:
    """Write a model so that `SentenceTransformer(folder)` loads it, without `trust_remote_code`.

    The folder is written atomically; an existing one is replaced.

    Args:
        model: The encoder, without projectors and other parts of the training.
        folder: The folder.
        card: Text of `README.md`; None for the card of sentence-transformers.

    Raises:
        OpencseError: A weight is not finite, or the folder cannot be written.
    """
    require_finite(model, "the trained model")
    with replaced_folder(Path(folder)) as temporary, quiet(), contextlib.suppress(UserWarning):
        model.save_pretrained(str(temporary), create_model_card=card is None)
        if card is not None:
            (temporary / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace")
