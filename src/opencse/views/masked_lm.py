"""Any masked language model by name or folder, and the batches in which it is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opencse.models.masked_lm import load_masked_lm


class MaskedLM:
    """A masked language model with its tokenizer, in eval mode.

    Args:
        name: A local folder or a hub id.
        device: "cpu", "cuda", ...; "" for a GPU where there is one.
        batch_size: Sentences in one forward pass.
    """

    def __init__(self, name: str, *, device: str = "", batch_size: int = 64) -> None:
        import torch

        self.model, self.tokenizer = load_masked_lm(name)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.batch_size = batch_size
        self.model.to(self.device)
        self.special = np.array(sorted(set(self.tokenizer.all_special_ids)))
        limit = getattr(self.model.config, "max_position_embeddings", 512) - 2
        self.max_length = min(limit, self.tokenizer.model_max_length)

    @property
    def digest(self) -> str:
        """SHA-256 over the weights, by name, and the vocabulary."""
        joined = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, value in sorted(self.model.state_dict().items()):
            joined.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return joined.hexdigest()

    def encode(self, texts: Sequence[str], *, room: float = 0.0) -> Any:
        """Tokenise, with special tokens and offsets, cut to what the model takes less a share of room to grow."""
        longest = int(self.max_length * (1 - room))
        return self.tokenizer(list(texts), truncation=True, max_length=longest, return_offsets_mapping=True)

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield row numbers, rows of like length together, so that little is padding; fewer rows where they are long.

        Scores over the vocabulary fill the memory, so a batch has at most as many tokens as `batch_size` rows of 32.
        """
        batch: list[int] = []
        for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
            if batch and (len(batch) == self.batch_size or (len(batch) + 1) * lengths[i] > 32 * self.batch_size):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def logits(self, ids: Sequence[Sequence[int]]) -> Any:
        """Return scores (batch, longest, vocabulary) as a tensor; special tokens have -inf, so none is predicted."""
        import torch

        width = max(len(row) for row in ids)
        padded = torch.full((len(ids), width), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros((len(ids), width), dtype=torch.long)
        for i, row in enumerate(ids):
            padded[i, : len(row)] = torch.tensor(row)
            mask[i, : len(row)] = 1
        with torch.inference_mode():
            out = self.model(input_ids=padded.to(self.device), attention_mask=mask.to(self.device)).logits.float()
            out[..., torch.as_tensor(self.special, device=out.device)] = float("-inf")
        return out
