"""Template denoising (PromptBERT, Jiang et al., EMNLP 2022, §3.3): a prompt's own vector, taken away from a sentence's.

The template is encoded alone, with its second part at the positions where it stands behind a sentence of ℓ tokens;
what the mask then holds is the template's own contribution δ(ℓ), and the sentence's vector becomes h − δ(ℓ).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import first_position
from opencse.encoder.prompts import Frame
from opencse.errors import OpencseError


class TemplateDenoising(nn.Module):
    """Takes δ(ℓ) away from sentence vectors; as the last module of a `SentenceTransformer`, or by `delta` alone.

    Args:
        transformer: The transformers encoder, which stays the model's own: its weights are not this module's.
        frame: The template's ids, with its mask.
        positions: `model` counts as the model does for sentences. `zero` begins at 0 whatever the model, as
            PromptBERT's code does; for RoBERTa, whose first position is 2, δ is then that of shifted positions.
        dropout: A dropout rate of the template's own; None for the model's.

    Raises:
        OpencseError: The model takes no position ids.
    """

    def __init__(
        self, transformer: nn.Module, frame: Frame, positions: str = "model", dropout: float | None = None
    ) -> None:
        super().__init__()
        if getattr(getattr(transformer, "embeddings", None), "position_embeddings", None) is None:
            raise OpencseError(
                f"template denoising needs position embeddings, which a {type(transformer).__name__} has not",
                "Switch it off with --set encoder.denoising=none.",
            )
        self._transformer = (transformer,)  # in a tuple, where PyTorch does not look
        if frame.mask is None:
            raise ValueError("the frame has no mask")
        self.frame = frame
        self._mask = frame.mask
        self._dropout = dropout
        self._start = first_position(transformer) if positions == "model" else 0

    def delta(self, lengths: Tensor) -> Tensor:
        """δ(ℓ) for sentences of these numbers of tokens (n,): (n, width), one pass over the distinct lengths.

        In training mode dropout applies, with one mask for all sentences of one length, and gradients flow.
        """
        distinct, which = lengths.unique(return_inverse=True)
        before, after = len(self.frame.before), len(self.frame.after)
        device = lengths.device
        ids = torch.tensor([*self.frame.before, *self.frame.after], device=device).expand(len(distinct), -1)
        places = torch.arange(before + after, device=device).expand(len(distinct), -1).clone()
        places[:, before:] += distinct[:, None]
        model: Any = self._transformer[0]
        ones = torch.ones_like(ids)
        with dropout_rate(model, self._dropout):
            hidden = model(input_ids=ids, attention_mask=ones, position_ids=places + self._start).last_hidden_state
        return hidden[:, before + self._mask][which]

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Change `sentence_embedding`."""
        lengths = features["attention_mask"].sum(1) - len(self.frame)
        vectors = features["sentence_embedding"]
        features["sentence_embedding"] = vectors - self.delta(lengths).to(vectors.dtype)
        return features
