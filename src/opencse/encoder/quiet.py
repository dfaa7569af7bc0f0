"""Loading models without the progress bars of the libraries that do it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress bars and load reports of transformers."""
    from transformers.utils import logging as hf_logging

    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers", "huggingface_hub")]
    levels, bars = [logger.level for logger in loggers], hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            hf_logging.enable_progress_bar()
