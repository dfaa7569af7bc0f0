"""ListMLE: likelihood of the teacher's ranking under the student (RankCSE eq. 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from opencse.losses.distillation import Distillation, Lists

_FAR_BELOW = -1e4  # its exponential is exactly 0, and unlike -inf it leaves no NaN in gradients


@dataclass(frozen=True, kw_only=True)
class ListMLE(Distillation):
    r"""Negative log-likelihood of the teacher's permutation π under Plackett-Luce (Xia et al., ICML 2008; RankCSE).

    .. math:: L_i = \sum_k \Big[ \log \sum_{l \ge k} e^{S_{i,\pi(l)}} - S_{i,\pi(k)} \Big]

    averaged over the anchors. The sum over a list of N grows with N log N; the mean per position depends little on the
    batch size, so that the weight of the term can stay the same. Ties of the teacher keep the order of the batch.

    The public code of RankCSE adds 1e-7 inside the logarithm after subtracting the maximum of the row: candidates whose
    cosine is about 0.8 below the maximum are then no longer ranked, only pushed up. `epsilon` gives that form.

    Attributes:
        reduction: `list` sums over the positions of a list, `position` averages over them.
        epsilon: Summand inside the logarithm (1e-7 in the public code); 0 for the exact likelihood.
    """

    kind: ClassVar[str] = "list_mle"

    reduction: Literal["list", "position"] = "list"
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon < 0:
            raise ValueError("epsilon must not be negative")

    def list_loss(self, lists: Lists) -> Tensor:
        """Return the loss of lists; see the class."""
        order = lists.teacher.masked_fill(~lists.kept, -torch.inf).sort(dim=1, descending=True, stable=True).indices
        kept = lists.kept.gather(1, order)  # excluded candidates come last
        scores = lists.student.gather(1, order).masked_fill(~kept, _FAR_BELOW)
        if self.epsilon:
            scores = scores - scores.max(dim=1, keepdim=True).values
            log_rest = (scores.exp().flip(1).cumsum(1).flip(1) + self.epsilon).log()
        else:
            log_rest = scores.flip(1).logcumsumexp(1).flip(1)
        nll = (log_rest - scores).masked_fill(~kept, 0).sum(dim=1)
        return (nll / kept.sum(dim=1) if self.reduction == "position" else nll).mean()
