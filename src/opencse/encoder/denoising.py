"""Template denoising (PromptBERT, Jiang et al., EMNLP 2022, §3.3): subtraction of the prompt's own vector.

The template is encoded alone, with its second part at its positions behind a sentence of ℓ tokens. The vector of the
mask is then the contribution δ(ℓ) of the template, and the sentence vector becomes h − δ(ℓ).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import first_position
from opencse.encoder.prompts import Frame
from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move


class TemplateDenoising(nn.Module):
    """Subtracts δ(ℓ) from sentence vectors: as the last module of a `SentenceTransformer`, or with `delta`.

    Args:
        transformer: The transformers encoder; its weights do not become weights of this module.
        frame: Token ids of the template, with its mask.
        positions: `model` uses the model's position ids. `zero` begins at 0 for every model, like PromptBERT's code;
            for RoBERTa, whose first position is 2, δ is then computed at shifted positions.
        dropout: Dropout rate for the template; None for that of the model.

    Raises:
        OpencseError: The model takes no position ids.
    """

    def __init__(
        self, transformer: nn.Module, frame: Frame, positions: str = "model", dropout: float | None = None
    ) -> None:
        super().__init__()
        if getattr(getattr(transformer, "embeddings", None), "position_embeddings", None) is None:
            raise OpencseError(
                f"template denoising needs position embeddings, which {type(transformer).__name__} lacks",
                "Switch it off with --set encoder.denoising=none.",
            )
        self._transformer = (transformer,)  # in a tuple, so that PyTorch does not register it
        if frame.mask is None:
            raise ValueError("the frame has no mask")
        self.frame = frame
        self._mask = frame.mask
        self._dropout = dropout
        self._start = first_position(transformer) if positions == "model" else 0

    def delta(self, lengths: Tensor) -> Tensor:
        """Return δ(ℓ), (n, width), for the numbers of tokens of n sentences, in one pass over the distinct lengths.

        In training mode dropout applies, with one mask for all sentences of one length, and gradients flow. The lengths
        should be on the CPU: if they are not, the process waits for their device.
        """
        distinct, inverse = lengths.cpu().unique(return_inverse=True)
        before, after = len(self.frame.before), len(self.frame.after)
        template = torch.tensor([*self.frame.before, *self.frame.after], device="cpu").expand(len(distinct), -1)
        positions = torch.arange(before + after, device="cpu").expand(len(distinct), -1).clone()
        positions[:, before:] += distinct[:, None]
        model: Any = self._transformer[0]
        device = next(model.parameters()).device
        ids, position_ids, inverse = (move(x, device) for x in (template, positions + self._start, inverse))
        ones = torch.ones_like(ids)
        with dropout_rate(model, self._dropout):
            hidden = model(input_ids=ids, attention_mask=ones, position_ids=position_ids).last_hidden_state
        return hidden[:, before + self._mask][inverse]

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Subtract δ(ℓ) from `sentence_embedding`."""
        lengths = features["attention_mask"].sum(1) - len(self.frame)
        vectors = features["sentence_embedding"]
        features["sentence_embedding"] = vectors - self.delta(lengths).to(vectors.dtype)
        return features
