"""Any masked language model by name or folder, and the batches in which it is run."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from opencse.models.masked_lm import load_masked_lm

_TOKENS = 512  # in one forward pass: matrix products run at full speed, and their scores fill 60 MB


class MaskedLM:
    """A masked language model with its tokenizer, in eval mode.

    Args:
        name: A local folder or a hub id.
        device: "cpu", "cuda", ...; "" for the one that `opencse.encoder.device.choose_device` finds.
        batch_size: Most sentences in one forward pass.
        precision: "fp32", "bf16", or "auto": whichever multiplies faster on this machine.
    """

    def __init__(
        self, name: str, *, device: str = "", batch_size: int = 64, precision: Literal["auto", "fp32", "bf16"] = "fp32"
    ) -> None:
        import torch

        from opencse.encoder.device import choose_device
        from opencse.encoder.precision_choice import resolve_precision
        from opencse.encoder.short_attention import use_short_attention

        self.model, self.tokenizer = load_masked_lm(name)
        self.device = device or str(choose_device())
        self.batch_size = batch_size
        self.model.to(self.device)
        self.digest = self._digest()
        if resolve_precision(precision, self.model.config, self.device) == "bf16":
            self.model.to(torch.bfloat16)
        use_short_attention(self.model)
        output = self.model.get_output_embeddings()
        if isinstance(output, torch.nn.Linear):
            output.register_forward_pre_hook(self._only_wanted)
        self.special = np.array(sorted(set(self.tokenizer.all_special_ids)))
        limit = getattr(self.model.config, "max_position_embeddings", 512) - 2
        self.max_length = min(limit, self.tokenizer.model_max_length)

    def _digest(self) -> str:
        """SHA-256 over the weights, by name, and the vocabulary."""
        joined = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, value in sorted(self.model.state_dict().items()):
            joined.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return joined.hexdigest()

    def encode(self, texts: Sequence[str], *, room: float = 0.0) -> Any:
        """Tokenise, with special tokens and offsets, cut to what the model takes less a share of room to grow."""
        longest = int(self.max_length * (1 - room))
        return self.tokenizer(list(texts), truncation=True, max_length=longest, return_offsets_mapping=True)

    def scores(self, ids: Sequence[Sequence[int]], where: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield every row's number and its scores over the vocabulary, the shortest rows first.

        Sentences of one length go together, so nothing is padding and no sentence sees another; what the model makes of
        one does not depend on the others, to the last bit in bf16 where this was tried. The product with the vocabulary
        is half of the work, so it runs only where it is asked for.

        Args:
            ids: Token ids of each row, with special tokens.
            where: Positions of interest of each row, int64 (positions,).

        Yields:
            Row number, float32 (positions, vocabulary); special tokens have -inf, so that none is predicted.
        """
        import torch

        for batch in self._batches([len(row) for row in ids]):
            tokens = torch.tensor([ids[i] for i in batch], device=self.device)
            offsets = np.arange(len(batch)) * tokens.shape[1]
            wanted = np.concatenate([where[i] + offset for i, offset in zip(batch, offsets, strict=True)])
            self._wanted = torch.from_numpy(wanted).to(self.device)
            with torch.inference_mode():
                logits = self.model(input_ids=tokens).logits
                if logits.dim() == 3:  # an output layer of another kind
                    logits = logits.flatten(0, 1)[self._wanted]
                found = logits.float().cpu().numpy()
            found[:, self.special] = -np.inf
            ends = np.cumsum([len(where[i]) for i in batch])[:-1]
            yield from zip(batch, np.split(found, ends), strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield row numbers, rows of one length together: few enough that scores over the vocabulary fit in memory."""
        order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
        for length, group in itertools.groupby(order, key=lambda i: lengths[i]):
            rows, size = list(group), max(1, min(self.batch_size, _TOKENS // max(length, 1)))
            yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def _only_wanted(self, layer: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Before the output layer: keep the hidden states of the positions of interest."""
        return (args[0].flatten(0, 1)[self._wanted], *args[1:])
