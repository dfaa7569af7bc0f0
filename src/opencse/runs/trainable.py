"""The interface between the training loop and the network that it trains."""

from __future__ import annotations

from torch import nn


class Trainable(nn.Module):
    """Base class of networks that the loop trains: from a batch and a `Context` to the loss and logged values.

    Attributes:
        encoder: The encoder, which is selected and exported.
        auxiliary: Modules of the terms, which are trained with it and saved in checkpoints only.
    """

    encoder: nn.Module
    auxiliary: nn.ModuleList
