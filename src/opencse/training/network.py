"""The network that is trained: from a batch of tokens to sentence vectors, and on to the loss.

Its two parts need not be opened to follow a recipe:

- `encode_batch` gives a sentence vector for each view of each row, (views, rows, width), and zero
  for views that a row lacks. How it groups, packs and recomputes texts changes speed and memory,
  not the vectors (`opencse.training.encoding`).
- `LossHead` projects these vectors, gives each loss of the recipe those of its views by name, and
  adds up the losses by their weights (`opencse.training.loss_head`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor, nn

from opencse.encoder.prompts import TemplateDenoising
from opencse.training.batches import Batch
from opencse.training.encoding import encode_batch
from opencse.training.loss_head import LossHead
from opencse.training.processes import sharing

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Network(nn.Module):
    """Encoder and loss head as one module.

    So all parts are trained, clipped, checkpointed, synchronised between processes and put into
    evaluation mode together.

    Args:
        encoder: The sentence encoder; only this part is exported.
        head: Everything after it.
        denoisers: Template denoising, by view.
        encode_twice: Encode again for the gradient, to save memory; see `encode_batch`.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        head: LossHead,
        denoisers: Mapping[str, TemplateDenoising] | None = None,
        encode_twice: bool = False,
    ) -> None:
        super().__init__()
        self._encode_twice = encode_twice
        self.encoder = encoder
        self.head = head
        # Not a module list: they have no weights of their own.
        self._denoisers = dict(denoisers or {})

    def train(self, mode: bool = True) -> Network:
        """Set the mode of all parts; frozen modules at the beginning of the encoder stay as they are.

        A model that is only extended by trained modules gives its own vectors, without dropout.
        """
        super().train(mode)
        for module in self.encoder.children():
            if any(parameter.requires_grad for parameter in module.parameters()):
                break
            module.eval()
        return self

    def forward(
        self, batch: Batch, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Encode this process's part of a batch, and compute the loss.

        Returns:
            The weighted sum, the value of each loss by name, and what the losses report.
        """
        encoded = encode_batch(
            self.encoder,
            batch,
            self._denoisers,
            self._encode_twice,
            token_views=self.head.objective.token_outputs,
        )
        # With several processes, losses compare the rows of all of them.
        with sharing(batch.shares):
            return self.head(encoded.vectors, batch, step, encoded.tokens)
