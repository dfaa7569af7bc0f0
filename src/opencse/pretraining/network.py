"""The masked language model as a trainable network of the training loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives import Context
from opencse.pretraining.batches import MaskedBatch, MaskedInputs
from opencse.runs.trainable import Trainable


class MaskedLMNetwork(Trainable):
    """The network that maps a masked batch to the cross-entropy of the masked tokens.

    Args:
        model: A transformers model with a masked-LM head.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder = model
        self.auxiliary = nn.ModuleList()

    def forward(
        self, batch: MaskedBatch, context: Context, with_norms: bool = False
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the mean cross-entropy of the masked tokens, in nats, and the share predicted correctly."""
        loss: Any = 0.0
        correct: Any = 0.0
        for inputs in batch.groups:
            logits = self.logits(inputs)
            with torch.autocast(logits.device.type, enabled=False):
                logits = logits.float()
                loss = loss + F.cross_entropy(logits, inputs.labels, reduction="sum", ignore_index=-100)
            correct = correct + (logits.detach().argmax(-1) == inputs.labels).sum()
        return loss / batch.predicted, {"accuracy": correct / batch.predicted}

    def logits(self, inputs: MaskedInputs) -> Tensor:
        """Return the logits over the vocabulary at the masked positions, (m, vocabulary)."""
        with _only_positions(self.encoder.base_model, inputs.positions):
            return self.encoder(input_ids=inputs.ids, attention_mask=inputs.mask).logits[0]


@contextlib.contextmanager
def _only_positions(encoder: Any, positions: Tensor) -> Iterator[None]:
    """Make the encoder return only the hidden states at some positions, (1, m, width).

    The head, whose product with the vocabulary costs as much as several layers, then computes only these. This works
    for the head of every architecture.
    """

    def pick(module: nn.Module, args: Any, output: Any) -> Any:
        output["last_hidden_state"] = output.last_hidden_state.flatten(0, 1).index_select(0, positions).unsqueeze(0)
        return output

    handle = encoder.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()
