"""Recall of the pre-trained weights (OssCSE)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from opencse.foundation.numbers import check_range
from opencse.losses.term import Context, Embeddings, Frozen, LossOutput, Term, TermBuildContext, TermModule


@dataclass(frozen=True, kw_only=True)
class RecallLoss(Term):
    r"""L2 penalty on the distance of the encoder's weights from their initial values (L2-SP).

    .. math:: L = \frac{\gamma}{2} \sum_k (\theta_k - \theta^*_k)^2

    over all weights of the pre-trained encoder, including embeddings, biases and LayerNorms, but not those of the
    pooler, which these systems do not use, nor of projector and terms. Source: OssCSE eq. 4, a Laplace approximation of
    the pre-training posterior with an isotropic Fisher matrix. It is a sum, because the mean over so many weights would
    be negligible.

    The gradient γ(θ − θ*) is computed for each weight directly, so that no tensor of the size of the encoder enters the
    graph; it costs one more copy of the weights.

    Attributes:
        gamma: γ, the strength of the penalty.

    Example:
        >>> encoder = nn.Linear(2, 1, bias=False)
        >>> loss, weights = RecallLoss(gamma=0.5), InitialWeights(dict(encoder.named_parameters()))
        >>> encoder.weight.data += torch.tensor([[3.0, 4.0]])
        >>> output = loss(context=Context(modules={"recall": weights}))
        >>> f"{output.value:.2f}, distance {output.reports['distance']:.1f}"
        '6.25, distance 5.0'
    """

    kind: ClassVar[str] = "recall"
    compares_embeddings: ClassVar[bool] = False

    gamma: float = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "gamma")

    def module(self, build: TermBuildContext) -> TermModule:
        """Return the weights with copies of their initial values."""
        return InitialWeights({n: p for n, p in build.encoder.named_parameters() if "pooler." not in n})

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; linear in the number of weights, in time and memory."""
        module: InitialWeights = context.modules[self.name]
        weights, initial = zip(*module.trained(), strict=True)
        squares = _SquaredDistance.apply(initial, *weights)  # type: ignore[no-untyped-call]
        return LossOutput(self.gamma / 2 * squares, {"distance": squares.detach().sqrt()})


class InitialWeights(TermModule):
    """Weights of the encoder, with frozen copies of their initial values.

    Args:
        named: The weights by name.
    """

    def __init__(self, named: dict[str, nn.Parameter]) -> None:
        super().__init__()
        self.names = tuple(named)
        self._weights = tuple(named.values())  # in a tuple, because the encoder registers and saves them
        self._copies = Frozen(nn.ParameterList(p.detach().clone() for p in named.values()))

    def trained(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each weight that is trained, and its initial value."""
        for weight, initial in zip(self._weights, self._copies.module.parameters(), strict=True):
            if weight.requires_grad:
                yield weight, initial


class _SquaredDistance(torch.autograd.Function):
    """Σ(θ − θ*)², whose gradient is computed in the backward pass, one weight after another."""

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
