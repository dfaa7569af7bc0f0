"""Recall of the pre-trained weights (OssCSE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from opencse.objectives.frozen import Frozen
from opencse.objectives.term import Context, Embeddings, Term, TermBuildContext


@dataclass(frozen=True, kw_only=True)
class Recall(Term):
    r"""Pull the encoder's weights back to where they began.

    .. math:: L = \frac{\gamma}{2} \sum_k (\theta_k - \theta^*_k)^2

    over all weights of the pre-trained encoder, embeddings, biases and LayerNorms included, and none of the projector
    or of other terms. Source: OssCSE eq. 4, a Laplace approximation of the pre-training posterior with an isotropic
    Fisher matrix. The sum is meant: the mean over so many weights would weigh nothing.

    The gradient γ(θ − θ*) is handed to each weight directly, so that nothing of the size of the encoder enters the
    graph; the price is one more copy of the weights.

    Attributes:
        gamma: γ.
        exclude: Parts of the names of encoder weights that are left out. A pooler on top of the token vectors is by
            default: it is not among what was pre-trained, and takes no part in these systems.
    """

    kind: ClassVar[str] = "recall"
    acts_on_embeddings: ClassVar[bool] = False

    gamma: float = 2e-3
    exclude: tuple[str, ...] = ("pooler.",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma <= 0:
            raise ValueError("gamma must be positive")

    @property
    def views(self) -> tuple[str, ...]:
        """None: it reads weights."""
        return ()

    def module(self, build: TermBuildContext) -> nn.Module:
        """Return the initial weights, and which they are of."""
        named = [(n, p) for n, p in build.encoder.named_parameters() if not any(part in n for part in self.exclude)]
        return InitialWeights(dict(named))

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; linear in the number of weights, in time and memory."""
        module = context.modules[self.name]
        assert isinstance(module, InitialWeights)
        squares = _SquaredDistance.apply(module.initial, *module.weights)
        context.report(f"{self.name}/distance", squares.sqrt())
        return self.gamma / 2 * squares


class InitialWeights(nn.Module):
    """The weights that are pulled, which belong to the encoder, and copies of what they were at first.

    Args:
        named: The weights by name.
    """

    def __init__(self, named: dict[str, nn.Parameter]) -> None:
        super().__init__()
        self.names = tuple(named)
        self._weights = tuple(named.values())  # in a tuple: they are the encoder's, and saved as such
        self._copies = Frozen(nn.ParameterList(p.detach().clone() for p in named.values()))

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The current weights that are trained."""
        return tuple(w for w in self._weights if w.requires_grad)

    @property
    def initial(self) -> tuple[Tensor, ...]:
        """Their initial values."""
        pairs = zip(self._weights, self._copies.module.parameters(), strict=True)
        return tuple(copy for weight, copy in pairs if weight.requires_grad)


class _SquaredDistance(torch.autograd.Function):
    """Σ(θ − θ*)², whose gradient is made when it is asked for, one weight after another."""

    @staticmethod
    def forward(ctx: Any, initial: tuple[Tensor, ...], *weights: Tensor) -> Tensor:
        ctx.initial, ctx.weights = initial, weights
        total = weights[0].new_zeros((), dtype=torch.float64)
        for weight, start in zip(weights, initial, strict=True):
            total += torch.dist(weight, start).double() ** 2
        return total.to(weights[0].dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        factor = 2 * gradients[0]
        pairs = zip(ctx.weights, ctx.initial, strict=True)
        return None, *((weight - start).mul_(factor) for weight, start in pairs)
