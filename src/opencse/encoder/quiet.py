"""Loading models without the progress bars of the libraries that do it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress bars and load reports of transformers."""
    from transformers.utils import logging as hf_logging

    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    names = ("sentence_transformers", "transformers", "huggingface_hub")
    levels = {n: logging.getLogger(n).level for n in names}
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    for n in names:
        logging.getLogger(n).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for n, old in levels.items():
            logging.getLogger(n).setLevel(old)
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()
