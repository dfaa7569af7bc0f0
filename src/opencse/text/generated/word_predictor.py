"""Predictions of a masked language model, in batches of sentences of equal length."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from opencse.encoder.masked_lm import load_masked_lm

_TOKENS = 512  # in one forward pass: enough for full speed, and the scores over the vocabulary take 60 MB


class WordPredictor:
    """A masked language model with its tokenizer, in eval mode.

    Args:
        name: A local folder or a hub id.
        device: "cpu", "cuda", ...; "" for the one that `opencse.encoder.device.choose_device` finds.
        batch_size: Maximum number of sentences in one forward pass.
        precision: "fp32", "bf16", or "auto": whichever multiplies faster on this machine.
    """

    def __init__(
        self, name: str, *, device: str = "", batch_size: int = 64, precision: Literal["auto", "fp32", "bf16"] = "fp32"
    ) -> None:
        import torch

        from opencse.encoder.device import choose_device
        from opencse.encoder.precision import resolve_precision

        self.model, self.tokenizer = load_masked_lm(name)
        self.device = device or str(choose_device())
        self.batch_size = batch_size
        self.model.to(self.device)
        self.digest = self._digest()
        if resolve_precision(precision, self.model.config, self.device) == "bf16":
            self.model.to(torch.bfloat16)
        output = self.model.get_output_embeddings()
        if isinstance(output, torch.nn.Linear):
            output.register_forward_pre_hook(self._only_wanted)
        self.special = np.array(sorted(set(self.tokenizer.all_special_ids)))
        limit = getattr(self.model.config, "max_position_embeddings", 512) - 2
        self.max_length = min(limit, self.tokenizer.model_max_length)

    def _digest(self) -> str:
        """Return a SHA-256 of the weights, by name, and the vocabulary."""
        joined = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, value in sorted(self.model.state_dict().items()):
            joined.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return joined.hexdigest()

    def encode(self, texts: Sequence[str], *, room: float = 0.0) -> Any:
        """Tokenise n texts with special tokens and offsets.

        Args:
            texts: n texts.
            room: Share of the maximum length that is kept free for insertions.
        """
        longest = int(self.max_length * (1 - room))
        return self.tokenizer(list(texts), truncation=True, max_length=longest, return_offsets_mapping=True)

    def scores(self, ids: Sequence[Sequence[int]], where: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each row's index and its scores over the vocabulary, the shortest rows first.

        Sentences of equal length form a batch, so there is no padding, and the scores of a sentence are independent of
        the others (bit for bit in bf16, as far as tested). The product with the vocabulary is half of the work, so it
        is computed only at the given positions.

        Args:
            ids: Token ids of each row, with special tokens.
            where: Positions to score in each row, int64 (positions,).

        Yields:
            Index of the row, and its scores, float32 (positions, vocabulary); -inf for special tokens.
        """
        import torch

        for batch in self._batches([len(row) for row in ids]):
            tokens = torch.tensor([ids[i] for i in batch], device=self.device)
            offsets = np.arange(len(batch)) * tokens.shape[1]
            wanted = np.concatenate([where[i] + offset for i, offset in zip(batch, offsets, strict=True)])
            self._wanted = torch.from_numpy(wanted).to(self.device)
            with torch.inference_mode():
                logits = self.model(input_ids=tokens).logits
                if logits.dim() == 3:  # the output layer is not linear, so the hook did not run
                    logits = logits.flatten(0, 1)[self._wanted]
                found = logits.float().cpu().numpy()
            found[:, self.special] = -np.inf
            ends = np.cumsum([len(where[i]) for i in batch])[:-1]
            yield from zip(batch, np.split(found, ends), strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield batches of indices of rows of equal length, whose scores over the vocabulary fit in memory."""
        order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
        for length, group in itertools.groupby(order, key=lambda i: lengths[i]):
            rows, size = list(group), max(1, min(self.batch_size, _TOKENS // max(length, 1)))
            yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def _only_wanted(self, layer: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep only the hidden states of the positions to score, before the output layer."""
        return (args[0].flatten(0, 1)[self._wanted], *args[1:])
