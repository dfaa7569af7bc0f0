"""Base class of modules that mask tokens: the size and the special tokens of a vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opencse.losses.term import TermModule


class VocabularyModule(TermModule):
    """A module that knows the mask token and the special tokens of a tokenizer.

    Args:
        tokenizer: Tokenizer of the encoder.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self.vocabulary = len(tokenizer)
        self.mask_id: int = tokenizer.mask_token_id
        special = torch.zeros(self.vocabulary, dtype=torch.bool)
        special[tokenizer.all_special_ids] = True
        self.register_buffer("_special", special, persistent=False)
        self._special_on_host = special  # not a buffer: it stays on the CPU

    def is_content(self, ids: Tensor) -> Tensor:
        """Return a mask of the ids that are not special tokens, of the shape of `ids`."""
        special = self._special_on_host if ids.device.type == "cpu" else self._special
        assert isinstance(special, Tensor)
        return ~special[ids]
