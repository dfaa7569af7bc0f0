"""The interface between the training loop and what it trains."""

from __future__ import annotations

from torch import nn


class Trainable(nn.Module):
    """What the loop trains: called with a batch, a `Context` and whether to report gradient norms, it gives the loss.

    Attributes:
        encoder: What is kept and exported.
        auxiliary: What is trained or remembered beside it.
    """

    encoder: nn.Module
    auxiliary: nn.ModuleList
