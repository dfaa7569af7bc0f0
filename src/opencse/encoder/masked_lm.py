"""Loading of masked language models; every weight must come from the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opencse.encoder.loading import readable_errors
from opencse.encoder.names import resolve
from opencse.encoder.quiet import quiet
from opencse.foundation.errors import OpencseError


def load_masked_lm(name: str | Path) -> tuple[Any, Any]:
    """Load a masked language model and its tokenizer.

    Args:
        name: A folder, a hub id or a bundled name; the output folder of a finished run has no such model.

    Returns:
        The model in evaluation mode, and the tokenizer.

    Raises:
        OpencseError: There is no such model; its file has no masked-LM head (transformers would initialise a
            random one); or its tokenizer has no mask token or is a slow one.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    source = resolve(name)
    options: dict[str, Any] = {"local_files_only": Path(source).is_dir(), "trust_remote_code": False}
    with readable_errors(name), quiet():
        tokenizer: Any = AutoTokenizer.from_pretrained(source, **options)
        model, report = AutoModelForMaskedLM.from_pretrained(
            source, use_safetensors=True, output_loading_info=True, **options
        )
    if missing := sorted(report["missing_keys"]):
        raise OpencseError(
            f"{str(name)!r} has no masked-LM head (its file lacks {', '.join(missing[:3])})",
            "Pass a model that was saved with its masked-LM head.",
        )
    if tokenizer.mask_token_id is None or not tokenizer.is_fast:
        raise OpencseError(f"the tokenizer of {str(name)!r} has no mask token or is a slow one", "Choose a masked LM.")
    return model.eval(), tokenizer
