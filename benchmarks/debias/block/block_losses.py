"""Losses of the meaning block: what the similarity z·z' of two texts should be, given how they are related.

The texts of a training row fall into groups. Those of one group of statements say the same as each other; statements of
different groups don't. Pure functions of embeddings; `meaning_block` has the formula of z.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SAME = ("text", "paraphrase", "paraphrase_2", "same_paraphrase", "reordered", "roles_kept", "claim_reworded")
"""Columns that say what the row's sentence says."""
OPPOSED = (
    ("negation", "negated_paraphrase"),
    ("same_negation", "same_antonym"),
    ("claim_opposed", "claim_opposed_reworded"),
    ("negative_word",),
    ("antonym_swap",),
    ("opposed_paraphrase",),
)
"""Columns that contradict it, those together that say the same."""
EXCHANGED = ("swapped", "roles_exchanged", "number", "entity", "claim_exchanged")
"""Columns that say something else in nearly the same words."""
RELATED = ("related_1", "related_2", "related_3", "question", "topic_question", "keywords", "passage", "long")
"""Columns that claim neither the same nor the opposite."""

_FIRST_OPPOSED, _FIRST_EXCHANGED = 1, 100
GROUP: dict[str, int] = (
    dict.fromkeys(SAME, 0)
    | {name: _FIRST_OPPOSED + i for i, names in enumerate(OPPOSED) for name in names}
    | {name: _FIRST_EXCHANGED + i for i, name in enumerate(EXCHANGED)}
    | dict.fromkeys(RELATED, -1)
)
"""Group of each column: 0 for `SAME`, -1 for `RELATED`."""


@dataclass(frozen=True, kw_only=True)
class Relations:
    """Relations between n texts, each a Boolean matrix (n, n); a pair of which nothing is known is in none."""

    same: Tensor
    opposed: Tensor
    exchanged: Tensor
    related: Tensor
    generic: Tensor


def relations(row: Tensor, group: Tensor) -> Relations:
    """Return how texts are related.

    Args:
        row: Number of the training row of each text, (n,).
        group: Group of its column (`GROUP`), (n,).
    """
    together = (row[:, None] == row[None]) & ~torch.eye(len(row), dtype=torch.bool, device=row.device)
    own, other = group[:, None], group[None]
    to_anchor = together & ((own == 0) | (other == 0))
    largest = torch.maximum(own, other)
    return Relations(
        same=together & (own == other) & (own >= 0) & (own < _FIRST_EXCHANGED),
        opposed=to_anchor
        & (largest >= _FIRST_OPPOSED)
        & (largest < _FIRST_EXCHANGED)
        & (torch.minimum(own, other) == 0),
        exchanged=to_anchor & (largest >= _FIRST_EXCHANGED) & (torch.minimum(own, other) == 0),
        related=together & ((own < 0) | (other < 0)),
        generic=row[:, None] != row[None],
    )


@dataclass(frozen=True, kw_only=True)
class BlockLoss:
    r"""Weighted sum of the losses on g = z·z', with c = e·e'.

    .. math::
        L &= \lambda_k \operatorname{mean}_{generic} (g - \max(c, 0)^k)^2
           + \lambda_k \operatorname{mean}_{related} (g - \max(c, 0)^k)^2 \\
          &+ \lambda_s \operatorname{mean}_{same} \max(0, s - g)^2
           + \lambda_o \operatorname{mean}_{opposed} \max(0, g - o)^2
           + \lambda_x \operatorname{mean}_{exchanged} \max(0, g)^2 \\
          &+ \lambda_r \operatorname{mean} \max(0, m + \cos(v_i, v_k) - \cos(v_i, v_j))
           + \lambda_p \operatorname{mean} \log(1 + e^{-5 y\, code \cdot code'})

    The ranking (r) is over all i, j that say the same and i, k that are opposed or exchanged, within a row; y is 1 for
    the same, -1 for opposed. Exchanged pairs have no place in the code: no average over tokens tells them apart, and
    the attempt costs a fifth of what the code learns about opposites.

    Attributes:
        power: k; a rising function of c keeps the ranking of everything that is neither the same nor opposed.
        at_least: s.
        at_most: o, below 0.
        margin: m.
        strength: β of v in the ranking.
    """

    power: float = 4.0
    at_least: float = 0.8
    at_most: float = -0.7
    margin: float = 0.15
    strength: float = 0.5
    keep_weight: float = 40.0
    same_weight: float = 3.0
    opposed_weight: float = 3.0
    exchanged_weight: float = 1.0
    ranking_weight: float = 4.0
    code_weight: float = 1.0

    def __call__(self, e: Tensor, code: Tensor, z: Tensor, related: Relations) -> tuple[Tensor, dict[str, float]]:
        """Return the loss and its parts, with `right`: the share of pairs whose codes agree or differ as they should.

        Args:
            e: The untouched unit vectors, (n, d).
            code: Unit codes, (n, code).
            z: Meaning vectors, (n, d - 1).
            related: How the n texts are related.
        """
        c, g = e @ e.T, z @ z.T
        beyond = (g - c.clamp(min=0) ** self.power) ** 2
        mixed = (c + self.strength**2 * g) / (1 + self.strength**2)  # the cosines of v
        parts = {
            "generic": (self.keep_weight, _mean(beyond[related.generic])),
            "related": (self.keep_weight, _mean(beyond[related.related])),
            "same": (self.same_weight, _mean(F.relu(self.at_least - g[related.same]) ** 2)),
            "opposed": (self.opposed_weight, _mean(F.relu(g[related.opposed] - self.at_most) ** 2)),
            "exchanged": (self.exchanged_weight, _mean(F.relu(g[related.exchanged]) ** 2)),
            "ranking": (
                self.ranking_weight,
                _ranking(mixed, related, self.margin),
            ),
            "code": (self.code_weight, self.of_code(code, related)),
        }
        loss = torch.stack([weight * value for weight, value in parts.values()]).sum()
        reports = {name: float(value.detach()) for name, (_, value) in parts.items()}
        agreement = code @ code.T
        signs = torch.cat([agreement[related.same], -agreement[related.opposed]])
        return loss, reports | {"right": float((signs > 0).float().mean())}

    def of_code(self, code: Tensor, related: Relations) -> Tensor:
        """Return the logistic loss (p), in which opposed pairs count as much as those that say the same."""
        agreement = code @ code.T
        same, opposed = agreement[related.same], agreement[related.opposed]
        return (_mean(F.softplus(-5 * same)) + _mean(F.softplus(5 * opposed))) / 2


def sharpening_loss(topic: Tensor, e: Tensor, power: float, near: float = 0.4) -> Tensor:
    """Return the squared error of φ·φ' against max(e·e', 0)^k, near pairs counted again; φ and e have unit rows."""
    c = e @ e.T
    off = ~torch.eye(len(e), dtype=torch.bool, device=e.device)
    beyond = (topic @ topic.T - c.clamp(min=0) ** power) ** 2
    return _mean(beyond[off]) + 0.2 * _mean(beyond[off & (c > near)])


def groups(columns: Iterable[str]) -> list[int]:
    """Return the group of each column; KeyError for an unknown one."""
    return [GROUP[column] for column in columns]


def _ranking(similarity: Tensor, related: Relations, margin: float) -> Tensor:
    i, j = related.same.nonzero(as_tuple=True)
    hinge = F.relu(similarity[i] - similarity[i, j][:, None] + margin)
    return _mean(hinge[(related.opposed | related.exchanged)[i]])


def _mean(values: Tensor) -> Tensor:
    """Return the mean, 0 of none."""
    return values.sum() / max(values.numel(), 1)
