"""What the similarities of meaning vectors should be, given how the texts of a training row are related.

Texts that say the same are near, contradictions opposite, texts with exchanged roles or numbers
unrelated; of all others only what the untouched model says is known. `opencse.debias.meaning_block`
has the formula of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.tensors import move
from opencse.losses.base import Context, Embeddings, Loss, LossOutput, own_positions

Pairs = tuple[Tensor, Tensor]
"""Indices of the first and of the second text of each pair, (pairs,) each."""

_EXCHANGED = -1
_RELATED = -2
_QUERY = -3
_NEAR = (0.3, 0.9)
"""Cosines of the untouched model from which texts of different rows are near, and from which they may say the same."""
_SMOOTH = 0.05
# λ and k of f.
_LINEAR = 0.45
_POWER = 6.0
# s, o and m of the parts for the same, for opposites and for the ranking.
_AT_LEAST = 0.85
_AT_MOST = 0.8
_MARGIN = 0.12
_STRENGTH = 0.5
"""β of v in the ranking and the search."""
_WEIGHTS = {
    "far": 30.0, "near": 60.0, "related": 30.0, "same": 3.0, "opposed": 3.0, "exchanged": 4.0, "ranking": 6.0,
    "search": 0.7, "code": 1.0, "topic": 1.0, "sharpness": 10.0,
}  # fmt: skip
"""λ of the parts of the loss: f, n, r, s, o, x, m, q, p, t and φ."""


@dataclass(frozen=True, kw_only=True)
class Relations:
    """Ordered pairs of texts by their relation; a pair of which nothing is known is in none.

    The first text of a pair is one of `own`, by its position there; the second is any.

    Attributes:
        own: Numbers of the texts whose pairs these are, (m,).
        same: They say the same.
        opposed: One contradicts the other.
        exchanged: One says something else in nearly the same words.
        related: Neither the same nor the opposite, of one row.
        generic: Whether two texts are of different rows, (m, n).
        ranked: A text, one that says the same, and one that is opposed or exchanged, (triples,)
            each.
        searched: A query and a text that it is to find.
    """

    own: Tensor
    same: Pairs
    opposed: Pairs
    exchanged: Pairs
    related: Pairs
    generic: Tensor
    ranked: tuple[Tensor, Tensor, Tensor]
    searched: Pairs

    def to(self, device: torch.device) -> Relations:
        """Return the same relations on a device."""
        moved: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                moved[name] = move(value, device)
            else:
                moved[name] = tuple(move(tensor, device) for tensor in value)
        return Relations(**moved)


def relations(row: Tensor, group: Tensor, own: Tensor | None = None) -> Relations:
    """Return how n texts are related.

    Args:
        row: Number of the training row of each text, (n,).
        group: 0 for what the row's sentence says, 1 and more for statements that contradict it and
            say the same as each other, -1 for one that says something else, -2 for a related one,
            -3 for a query, (n,).
        own: Numbers of the texts whose pairs are returned, (m,); by default those of all.
    """
    numbers = torch.arange(len(row), device=row.device)
    if own is None:
        own = numbers
    apart = row[own, None] != row[None]
    together = ~apart & (own[:, None] != numbers)
    one = group[own, None]
    other = group[None]
    lower = torch.minimum(one, other)
    higher = torch.maximum(one, other)
    to_sentence = together & ((one == 0) | (other == 0))
    same = together & (one == other) & (one >= 0)
    opposed = to_sentence & (lower == 0) & (higher > 0)
    exchanged = to_sentence & (lower == _EXCHANGED)
    related = together & (lower <= _RELATED)
    i, j = _pairs(same)
    pair, k = _pairs((opposed | exchanged)[i])
    return Relations(
        own=own,
        same=(i, j),
        opposed=_pairs(opposed),
        exchanged=_pairs(exchanged),
        related=_pairs(related),
        generic=apart,
        ranked=(i[pair], j[pair], k),
        searched=_pairs(together & (one == _QUERY) & (other == 0)),
    )


def _pairs(chosen: Tensor) -> Pairs:
    first, second = chosen.nonzero(as_tuple=True)
    return first, second


@dataclass(frozen=True, kw_only=True)
class MeaningLoss(Loss):
    r"""Losses on the similarities g = z·z' of meaning vectors, with c = e·e' those of the untouched ones.

    .. math::
        f(c) &= \lambda c + (1 - \lambda) \max(c, 0)^k \\
        L &= \lambda_f \operatorname{mean}_{far} (g - f(c))^2
           + \lambda_n \operatorname{mean}_{near} (g - f(c))^2
           + \lambda_r \operatorname{mean}_{related} (g - f(c))^2 \\
          &+ \lambda_s \operatorname{mean}_{same} \max(0, \min(s, c + 0.5) - g)^2
           + \lambda_o \operatorname{mean}_{opposed} \max(0, g + o)^2
           + \lambda_x \operatorname{mean}_{exchanged} \max(0, g)^2 \\
          &+ \lambda_m \operatorname{mean} \tau \log(1 + e^{(m + \cos(v_i, v_k) - \cos(v_i, v_j)) / \tau})
           - \lambda_q \operatorname{mean}_{i, j} \log \frac{e^{\cos(v_i, v_j) / \tau}}
             {e^{\cos(v_i, v_j) / \tau} + \sum_{k} e^{\cos(v_i, v_k) / \tau}} \\
          &+ \lambda_p \operatorname{mean} \log(1 + e^{-5 y\, code \cdot code'})
           + \lambda_\varphi (\operatorname{mean}_{far} (\varphi \cdot \varphi' - f(c))^2
           + \operatorname{mean}_{near} (\varphi \cdot \varphi' - f(c))^2) \\
          &+ \lambda_t (\operatorname{mean}_{same} \max(0, \min(0.9, c + 0.25) - \varphi \cdot \varphi')^2
           + \operatorname{mean}_{opposed} \max(0, \min(0.9, c + 0.15) - \varphi \cdot \varphi')^2)

    f rises with c, so that whatever is neither the same nor opposed keeps its order. It may not be
    small everywhere: the squared cosines of many vectors of d numbers are 1 / d on average or more
    (Welch's bound), so that similarities that are asked to be 0 become noise; a share of c is
    signal of the same size. Nor may it be large: no text has more than √((1 - o) / 2) with both of
    two texts whose g is -o.

    Far and near are texts of different rows with c up to 0.3, and from there to 0.9; nearer ones
    may say the same. The ranking (m, τ = 0.05) is over all i, j that say the same and i, k that are
    opposed or exchanged, within a row. The search (λ_q) is InfoNCE over queries i, texts j of what
    their sentence says, and texts k of other rows with c below 0.9. y is 1 for the same, -1 for
    opposed, which count as much as each other. Exchanged pairs have no place in the code: no
    average over tokens tells them apart, and the attempt costs a fifth of what the code learns
    about opposites. φ is to find both kinds of pairs alike: what is claimed of a topic does not
    change it. Of texts of different rows it is to say what z says of them, so that the sign of the
    code matters little there.

    The views are named once, in groups. An embedding is [e ; z ; code ; φ], each of them padded to
    the same length, as `opencse.training.encoding.encode` returns it for encoders with a meaning
    block.

    Example:
        >>> loss = MeaningLoss(same=("text", "paraphrase"), opposed=(("negation",),))
        >>> text, negation = torch.tensor([[1.0, 1.0, 1.0, 1.0]]), torch.tensor([[1.0, -1.0, -1.0, 1.0]])
        >>> [round(loss(text, text, other).reports["opposed"].item(), 2) for other in (negation, text)]
        [0.0, 3.24]

    Attributes:
        same: Views that say what the sentence says, the sentence among them.
        opposed: Views that contradict it, those together that say the same as each other.
        exchanged: Views that say something else in nearly the same words.
        related: Views that claim neither the same nor the opposite.
        queries: Views that search for the sentence; related ones, too.
    """

    kind: ClassVar[str] = "meaning"
    view_fields: ClassVar[tuple[str, ...]] = ("same", "opposed", "exchanged", "related", "queries")

    same: tuple[str, ...]
    opposed: tuple[tuple[str, ...], ...]
    exchanged: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.same:
            raise ValueError("same must name the view of the sentence")
        named = [view for view, _ in self._groups()]
        for view in sorted(set(named)):
            if named.count(view) > 1:
                raise ValueError(f"the view '{view}' is in two groups")

    def _groups(self) -> Iterator[tuple[str, int]]:
        """Yield each view with the number of its group, as `relations` has them."""
        for group, views in enumerate((self.same, *self.opposed)):
            yield from ((view, group) for view in views)
        yield from ((view, _EXCHANGED) for view in self.exchanged)
        yield from ((view, _RELATED) for view in self.related)
        yield from ((view, _QUERY) for view in self.queries)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(m n d) for the n texts of the batch, of which m are of this process."""
        rows = {view: context.host_rows(present, view) for view in self.views}
        groups = dict(self._groups())
        group = torch.cat([torch.full_like(rows[view], groups[view]) for view in self.views])
        numbers = torch.cat(list(rows.values()))
        own = own_positions(numbers, len(present[self.views[0]]), context)
        related = relations(numbers, group, own)
        device = embeddings[self.views[0]].device
        chosen = []
        for view in self.views:
            shared = context.processes.all_rows(embeddings[view])
            chosen.append(shared[move(rows[view], device)])
        parts = torch.cat(chosen).tensor_split(4, dim=-1)
        e, z, code, topic = (F.normalize(part, dim=-1) for part in parts)
        return self.of_vectors(e, z, code, topic, related.to(device), context)

    def of_vectors(
        self,
        e: Tensor,
        z: Tensor,
        code: Tensor,
        topic: Tensor,
        related: Relations,
        context: Context | None = None,
    ) -> LossOutput:
        """Return the loss of n texts, with its parts and `right`: the share of pairs whose codes are right.

        Args:
            e: The untouched unit vectors, (n, d).
            z: Meaning vectors, unit, (n, d').
            code: Unit codes, (n, p).
            topic: φ, unit, (n, q).
            related: How the texts are related.
            context: As given to the loss.
        """
        own = related.own
        c = e[own] @ e.T
        g = z[own] @ z.T
        agreement = code[own] @ code.T
        topics = topic[own] @ topic.T
        target = expected(c)
        beyond = (g - target) ** 2
        blurred = (topics - target) ** 2
        # The cosines of v, which is made of e and z.
        mixed = (c + _STRENGTH**2 * g) / (1 + _STRENGTH**2)
        same = related.same
        opposed = related.opposed
        i, j, k = related.ranked
        gaps = (mixed[i, k] - mixed[i, j] + _MARGIN) / _SMOOTH
        # Both what says the same and what says the opposite is about the same, so φ is to be nearer
        # than the untouched vectors, of what says the same a little more.
        same_apart = (c[same] + 0.25).clamp(max=0.9) - topics[same]
        opposed_apart = (c[opposed] + 0.15).clamp(max=0.9) - topics[opposed]
        query, text = related.searched
        # Texts of other rows that are very near may say the same, so they count for nothing.
        counted = related.generic & (c < _NEAR[1])
        others = (mixed / _SMOOTH).masked_fill(~counted, -1e4).logsumexp(dim=1)
        far = counted & (c <= _NEAR[0])
        near = counted & (c > _NEAR[0])
        signs = torch.cat([agreement[same], -agreement[opposed]])
        sums = {
            "far": _sum(beyond * far, far),
            "near": _sum(beyond * near, near),
            "related": _sum(beyond[related.related]),
            "same": _sum(F.relu((c[same] + 0.5).clamp(max=_AT_LEAST) - g[same]) ** 2),
            "opposed": _sum(F.relu(g[opposed] + _AT_MOST) ** 2),
            "exchanged": _sum(F.relu(g[related.exchanged]) ** 2),
            "ranking": _sum(_SMOOTH * F.softplus(gaps)),
            "search": _sum(F.softplus(others[query] - mixed[query, text] / _SMOOTH)),
            "code of same": _sum(F.softplus(-5 * agreement[same])),
            "code of opposed": _sum(F.softplus(5 * agreement[opposed])),
            "topic of same": _sum(F.relu(same_apart) ** 2),
            "topic of opposed": _sum(F.relu(opposed_apart) ** 2),
            "sharpness of far": _sum(blurred * far, far),
            "sharpness of near": _sum(blurred * near, near),
            "right": _sum((signs > 0).to(g.dtype)),
        }
        # All means at once, because each is a message between the processes.
        totals = torch.stack([total for total, _ in sums.values()])
        counts = torch.stack([count for _, count in sums.values()])
        means = (context or Context()).processes.mean(totals, counts)
        mean = dict(zip(sums, means.unbind(), strict=True))

        plain = ("far", "near", "related", "same", "opposed", "exchanged", "ranking", "search")
        parts = {name: mean[name] for name in plain}
        parts["code"] = (mean["code of same"] + mean["code of opposed"]) / 2
        parts["topic"] = mean["topic of same"] + mean["topic of opposed"]
        parts["sharpness"] = mean["sharpness of far"] + mean["sharpness of near"]
        loss = torch.stack([_WEIGHTS[name] * value for name, value in parts.items()]).sum()
        reports = {name: value.detach() for name, value in parts.items()}
        return LossOutput(loss, reports | {"right": mean["right"].detach()})


def expected(c: Tensor) -> Tensor:
    """Return f(c): what z·z' is to be of texts that say neither the same nor the opposite."""
    return _LINEAR * c + (1 - _LINEAR) * c.clamp(min=0) ** _POWER


def _sum(values: Tensor, counted: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sum and the number of values; with a mask, which counts them, the others are 0."""
    total = values.sum()
    if counted is None:
        return total, torch.full_like(total, float(values.numel()))
    return total, counted.sum().to(total.dtype)
