"""The masked language model as the training loop sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives import Context
from opencse.pretraining.batches import Inputs, MaskedBatch
from opencse.runs.trainable import Trainable


class MaskedLMNetwork(Trainable):
    """From a masked batch to the cross-entropy of the chosen tokens.

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
        """Mean cross-entropy over the batch's guesses, in nats; and the share that was guessed right."""
        loss: Any = 0.0
        right: Any = 0.0
        for inputs in batch.groups:
            logits = self.logits(inputs)
            with torch.autocast(logits.device.type, enabled=False):
                logits = logits.float()
                loss = loss + F.cross_entropy(logits, inputs.labels, reduction="sum", ignore_index=-100)
            right = right + (logits.detach().argmax(-1) == inputs.labels).sum()
        return loss / batch.guesses, {"accuracy": right / batch.guesses}

    def logits(self, inputs: Inputs) -> Tensor:
        """Scores over the vocabulary, (m, vocabulary), at the positions to guess alone."""
        with _only(self.encoder.base_model, inputs.positions):
            return self.encoder(input_ids=inputs.ids, attention_mask=inputs.mask).logits[0]


@contextlib.contextmanager
def _only(encoder: Any, positions: Tensor) -> Iterator[None]:
    """Let the encoder hand on only the hidden states at some positions, (1, m, width).

    The head, whose product with the vocabulary is as costly as several layers, then computes only these; and this
    works for the head of every architecture.
    """

    def pick(module: nn.Module, args: Any, output: Any) -> Any:
        output["last_hidden_state"] = output.last_hidden_state.flatten(0, 1).index_select(0, positions).unsqueeze(0)
        return output

    handle = encoder.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()
