"""The interface between the training loop and what it trains."""

from __future__ import annotations

from torch import nn


class Trainable(nn.Module):
    """Base class of networks that the loop trains: from a batch and a `Context` to the loss and logged values.

    Attributes:
        encoder: What is kept and exported.
        auxiliary: What is trained or remembered beside it.
    """

    encoder: nn.Module
    auxiliary: nn.ModuleList
