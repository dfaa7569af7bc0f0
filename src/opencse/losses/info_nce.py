"""InfoNCE: each anchor has to find its positive among the candidates; and losses with a margin."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_range
from opencse.foundation.tensors import move
from opencse.losses.base import Context, Embeddings, Loss, LossOutput, global_mean, mean_reports


@dataclass(frozen=True, kw_only=True)
class InfoNCELoss(Loss):
    r"""InfoNCE over in-batch and hard negatives (NT-Xent, MultipleNegativesRankingLoss).

    With c the cosine, t the temperature and t' that of the hard negatives,

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_j e^{c(a_i, n_j)/t'}}

    averaged over the rows that have both anchor and positive. Missing candidates and negatives are
    left out of every sum. Sources: SimCSE (Gao et al., EMNLP 2021) eq. 1 and 5; HiNCE (SAN paper)
    eq. 2 for t'. With `both_sides`, the denominator also has the hard negatives as the positive
    sees them, :math:`\sum_j e^{c(p_i, n_j)/t'}` (CoT-BERT, Zhang et
    al., ICANN 2024, eq. 3).

    Attributes:
        anchor: View of the anchors.
        positive: View of the positives, which are in-batch negatives of the other rows.
        negatives: Views with hard negatives.
        temperature: t, in units of cosine similarity.
        negative_temperature: t', for the hard negatives only (HiNCE), or one for each of
            `negatives`; by default t.
        both_sides: Whether the positives are kept away from the hard negatives, too.

    Example:
        >>> anchor, twin = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> output = InfoNCELoss(temperature=0.5)(anchor, twin)
        >>> f"{output.value:.3f}, accuracy {output.reports['accuracy']:.1f}"
        '0.330, accuracy 1.0'
    """

    kind: ClassVar[str] = "info_nce"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negatives")

    anchor: str = "anchor"
    positive: str = "twin"
    negatives: tuple[str, ...] = ()
    temperature: float = 0.05
    negative_temperature: float | tuple[float, ...] | None = None
    both_sides: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.both_sides and not self.negatives:
            raise ValueError(
                "both_sides without negatives has no effect: name the view in `negatives`"
            )
        temperature = self.negative_temperature
        if isinstance(temperature, tuple) and len(temperature) != len(self.negatives):
            raise ValueError(
                f"{len(temperature)} values of negative_temperature, but {len(self.negatives)} "
                "negatives"
            )
        if not self.negatives and temperature is not None:
            raise ValueError(
                "negative_temperature without negatives has no effect: name the view in `negatives`"
            )
        check_range(self, "(0, inf)", "temperature", "negative_temperature")

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; needs O(b B d) time and O(b B) memory for the b anchors of this process."""
        rows = context.rows(present, self.anchor, self.positive)
        if not len(rows):
            return self.zero(embeddings)
        unit = {view: F.normalize(embeddings[view], dim=-1) for view in self.views}
        processes = context.processes
        own = own_anchors(self, present, context)
        shared = self.shared_negatives(unit[self.anchor][own.positives], len(rows), context)

        # Anchors of this process against the candidates of all.
        anchors = processes.own_rows(unit[self.anchor])
        cosines = anchors @ processes.all_rows(unit[self.positive]).T
        hard = {view: anchors @ processes.all_rows(unit[view]).T for view in self.negatives}
        reports = self.reports(cosines, hard, present, own, context)
        in_batch, shift = self.adjusted(cosines, own.first, present, context)

        # One block of logits for each kind of candidate; a missing candidate has the logit -∞.
        exists = move(present[self.positive], context.device)
        blocks = [(in_batch / self.temperature).masked_fill(~exists, -math.inf)]
        for vectors in shared:
            blocks.append(anchors @ vectors.T / self.temperature)
        temperatures = self._temperatures_of_negatives(len(hard))
        for (view, cosine), temperature in zip(hard.items(), temperatures, strict=True):
            allowed = move(present[view], context.device).expand_as(cosine)
            logits = (cosine + shift) / temperature
            blocks.append(logits.masked_fill(~allowed, -math.inf))
            if self.both_sides:
                positives = processes.own_rows(unit[self.positive])
                seen = positives @ processes.all_rows(unit[view]).T / temperature
                blocks.append(seen.masked_fill(~allowed, -math.inf))
        # The positive of row i is in column own.first + i of the first block.
        logits = torch.cat(blocks, dim=1)[own.rows]
        total = F.cross_entropy(logits, own.positives, reduction="sum")
        loss = global_mean(total, len(own.rows), context)
        return LossOutput(loss, reports)

    def _temperatures_of_negatives(self, count: int) -> tuple[float, ...]:
        """Return the temperature of each of `count` views with hard negatives."""
        temperature = self.negative_temperature or self.temperature
        if isinstance(temperature, tuple):
            return temperature
        return (temperature,) * count

    def adjusted(
        self, cosines: Tensor, first: int, present: Embeddings, context: Context
    ) -> tuple[Tensor, Tensor | float]:
        """Return the cosines (b, B) of anchors and in-batch candidates for the softmax.

        Args:
            cosines: Of the b anchors of this process and the B candidates of all processes.
            first: Number of the first of these anchors in the batch: the positive of the anchor in
                row i is in column first + i. With one process it is 0.
            present: The masks given to the loss.
            context: As given to the loss.

        Returns:
            The cosines, and what is added to those of hard negatives, which broadcasts to (b, B).
        """
        return cosines, 0.0

    def shared_negatives(self, anchors: Tensor, count: int, context: Context) -> list[Tensor]:
        """Return unit vectors (k, d) that are further negatives of all anchors.

        Args:
            anchors: The anchors of this process, (n, d).
            count: Number of anchors of all processes.
            context: As given to the loss.
        """
        return []

    @torch.no_grad()
    def reports(
        self,
        cosines: Tensor,
        hard: dict[str, Tensor],
        present: Embeddings,
        own: OwnAnchors,
        context: Context,
    ) -> dict[str, Tensor]:
        """Return the in-batch accuracy, and mean cosines of positives, others and hard negatives.

        Args:
            cosines: Of the anchors of this process and the in-batch candidates of all, (b, B).
            hard: Of these anchors and hard negatives by view, (b, B).
            present: The masks given to the loss.
            own: The anchors of this process.
            context: As given to the loss.
        """
        candidates = context.rows(present, self.anchor, self.positive)
        block = cosines[own.rows][:, candidates]
        count = len(own.rows)
        places = torch.arange(own.before, own.before + count, device=block.device)
        nearest = block.argmax(dim=1) == places
        positives = block.gather(1, places[:, None])
        sums = {
            "accuracy": (nearest.sum().to(block.dtype), count),
            "cos_positive": (positives.sum(), count),
            "cos_other": (block.sum() - positives.sum(), count * (len(candidates) - 1)),
        }
        for view, cosine in hard.items():
            both = own_anchors(self, present, context, view).rows
            sums[f"cos_{view}"] = (cosine.diagonal(own.first)[both].sum(), len(both))

        return mean_reports(sums, context)


@dataclass(frozen=True)
class OwnAnchors:
    """The rows of this process that have an anchor and a positive.

    Attributes:
        rows: Their numbers among the rows of this process, (n,).
        positives: Their numbers in the batch, which are the columns of their positives, (n,).
        first: Number in the batch of the first row of this process.
        size: Number of rows of this process.
        before: How many such rows the processes before this one have.
    """

    rows: Tensor
    positives: Tensor
    first: int
    size: int
    before: int


def own_anchors(loss: InfoNCELoss, present: Embeddings, context: Context, *more: str) -> OwnAnchors:
    """Return the rows of this process that have anchor, positive and the views in `more`."""
    everywhere = context.host_rows(present, loss.anchor, loss.positive, *more)
    numbers = context.processes.own_rows(torch.arange(len(present[loss.anchor]), device="cpu"))
    first = int(numbers[0]) if len(numbers) else 0
    mine = everywhere[(everywhere >= first) & (everywhere < first + len(numbers))]
    return OwnAnchors(
        rows=move(mine - first, context.device),
        positives=move(mine, context.device),
        first=first,
        size=len(numbers),
        before=int((everywhere < first).sum()),
    )


# Cosines are kept this far from 1, because the derivative of the angle is infinite there.
_NEAR_ONE = 1e-6


@dataclass(frozen=True, kw_only=True)
class AngularInfoNCELoss(InfoNCELoss):
    r"""InfoNCE with cos(θ + m) instead of the cosine of each positive (ArcCSE's ArcCon loss).

    Source: Zhang et al., ACL 2022, eq. 4, after ArcFace (CVPR 2019).

    Attributes:
        degrees: m, the margin on the angle θ between anchor and positive.

    Example:
        >>> vectors = torch.eye(2)
        >>> for degrees in (0.0, 10.0, 60.0):
        ...     print(f"{AngularInfoNCELoss(temperature=0.5, degrees=degrees)(vectors, vectors).value:.3f}")
        0.127
        0.131
        0.314
    """

    kind: ClassVar[str] = "angular_info_nce"

    degrees: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "[0, 90)", "degrees")

    def adjusted(
        self, cosines: Tensor, first: int, present: Embeddings, context: Context
    ) -> tuple[Tensor, Tensor | float]:
        """See the base class."""
        positives = add_angle(cosines.diagonal(first), self.degrees)
        return cosines.diagonal_scatter(positives, first), 0.0


def add_angle(cosines: Tensor, degrees: float) -> Tensor:
    """Return cos(θ + m) of the given cosines, of any shape.

    Beyond θ + m = 180°, where the cosine would rise again, it keeps falling linearly. Within a
    tenth of a degree of θ = 0 there is no gradient.
    """
    m = math.radians(degrees)
    safe = cosines.clamp(-1 + _NEAR_ONE, 1 - _NEAR_ONE)
    turned = safe * math.cos(m) - (1 - safe.square()).sqrt() * math.sin(m)
    return torch.where(safe > -math.cos(m), turned, safe + math.cos(m) - 1)


@dataclass(frozen=True, kw_only=True)
class MarginInfoNCELoss(InfoNCELoss):
    r"""InfoNCE with s_p·m added to the cosines of positives, and s_n·m to those of negatives.

    A constant on all logits does not change a softmax, so only `(s_p − s_n)·m` matters: `p-n-` is
    plain InfoNCE, `p+` equals `n-`, and `p-n+` with m equals `p-` with 2m. A positive total makes
    the task easier (it mostly shrinks the gradient), a negative one harder (additive-margin
    softmax). Sources: IFM (Robinson et al., NeurIPS 2021) eq. 3, which is `p-n+`; BYOP §3. IFM and
    BYOP's -M average it with plain InfoNCE: two losses of weight 0.5.

    Attributes:
        signs: Notation of BYOP: `p` for positive and `n` for negative logits, each with `+` or `-`,
            such as `"p+n-"`.
        size: m in cosine units, a constant (BYOP's C), or `"dynamic"` (D): the cosine of the
            positive pair over N - 1.
        detach: Stop the gradient through a dynamic margin.

    Example:
        >>> vectors = torch.eye(2)
        >>> for signs in ("p-n-", "p-", "p+"):
        ...     loss = MarginInfoNCELoss(temperature=0.5, signs=signs, size=0.1)
        ...     print(signs, f"{loss(vectors, vectors).value:.3f}")
        p-n- 0.127
        p- 0.153
        p+ 0.105
    """

    kind: ClassVar[str] = "margin_info_nce"

    signs: str
    size: float | Literal["dynamic"]
    detach: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"(?=.)(p[+-])?(n[+-])?", self.signs):
            raise ValueError(f"signs must read like 'p+n-', 'p-' or 'n+', not '{self.signs}'")
        if isinstance(self.size, float) and self.size < 0:
            raise ValueError("size must not be negative: its direction is given by the signs")

    def _sign(self, letter: str) -> int:
        """Return the direction of the margin for `p` or `n`; 0 if the signs leave it out."""
        if f"{letter}+" in self.signs:
            return 1
        if letter in self.signs:
            return -1
        return 0

    def adjusted(
        self, cosines: Tensor, first: int, present: Embeddings, context: Context
    ) -> tuple[Tensor, Tensor | float]:
        """See the base class; a hard negative has the margin of its anchor."""
        candidates = len(context.host_rows(present, self.positive))
        positives = cosines.diagonal(first)
        size = self._sizes(positives, candidates)[:, None]
        columns = torch.arange(cosines.shape[1], device=cosines.device)
        of_positives = torch.arange(first, first + len(cosines), device=cosines.device)
        is_positive = columns == of_positives[:, None]
        signs = torch.where(is_positive, self._sign("p"), self._sign("n")).to(cosines.dtype)
        return cosines + signs * size, self._sign("n") * size

    def _sizes(self, positives: Tensor, candidates: int) -> Tensor:
        """Return m of each anchor from its positive's cosine, (b,); `candidates` is the paper's N."""
        if self.size != "dynamic":
            return positives.new_full((len(positives),), self.size)
        m = positives / max(candidates - 1, 1)
        return m.detach() if self.detach else m


@dataclass(frozen=True, kw_only=True)
class TwoWayMarginLoss(Loss):
    r"""Keep one view closer to the anchor than another, by at least α and at most β.

    With c the cosine and d = c(a, farther) - c(a, closer),

    .. math:: L_i = \max(d_i + \alpha, 0) + \max(-d_i - \beta, 0)

    averaged over the rows that have all three views. It is zero if α ≤ c(a, closer) - c(a, farther)
    ≤ β. Sources: OssCSE eq. 3 (closer: a paraphrase, farther: the negation; α = 0.05, β = 0.2);
    SNCSE's bidirectional margin loss (closer: the twin; α = 0.1, β = 0.3); with β = inf ArcCSE's
    triplet loss (Zhang et al., ACL 2022, eq. 7), where less of the sentence is masked in the closer
    view.

    Attributes:
        anchor: View of the anchors.
        closer: View that should be closer to the anchor.
        farther: View that should be farther from the anchor, though related to it.
        margin: α and β, in cosine units; β may be `inf`.

    Example:
        >>> anchor, paraphrase = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.8, 0.6]])
        >>> loss = TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=(0.05, 0.2))
        >>> for cosine in (0.7, 0.8, 0.0):  # of anchor and negation
        ...     negation = torch.tensor([[cosine, (1 - cosine**2) ** 0.5]])
        ...     print(f"{loss(anchor, paraphrase, negation).value:.2f}")
        0.00
        0.05
        0.60
    """

    kind: ClassVar[str] = "two_way_margin"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "closer", "farther")

    anchor: str = "anchor"
    closer: str
    farther: str
    margin: tuple[float, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        lower, upper = self.margin
        if not 0 <= lower <= upper:
            raise ValueError(
                f"margin must be two numbers with 0 <= lower <= upper, not {list(self.margin)}"
            )

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(B d)."""
        rows = context.rows(present, *self.views)
        if not len(rows):
            return self.zero(embeddings)
        unit = {view: F.normalize(embeddings[view][rows], dim=-1) for view in self.views}
        near = (unit[self.anchor] * unit[self.closer]).sum(dim=-1)
        far = (unit[self.anchor] * unit[self.farther]).sum(dim=-1)
        gap = near - far
        lower, upper = self.margin
        loss = F.relu(lower - gap)
        if not math.isinf(upper):
            loss = loss + F.relu(gap - upper)
        inside = ((gap >= lower) & (gap <= upper)).to(gap.dtype).mean()
        return LossOutput(loss.mean(), {"gap": gap.detach().mean(), "inside": inside})
