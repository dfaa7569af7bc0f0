"""RankCSE's losses: ranking distillation by ListNet and ListMLE, and agreement of two lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
    global_mean,
    mean_reports,
    own_positions,
)
from opencse.losses.rlrd_code_policy import CodePolicyWeights, PolicyState
from opencse.losses.rlrd_policy import PolicyWeights


@dataclass(frozen=True, kw_only=True)
class DistillationLoss(Loss):
    """Distil the ranking of candidates by one or several frozen teachers.

    For each anchor, all candidates of the batch are ranked. With several teachers, the target list
    is Σ_k w_k c_k(a_i, p_j) / t' (RankCSE eq. 9).

    Attributes:
        anchor: View of the anchors.
        candidates: View of the ranked candidates.
        teachers: Names of the teachers.
        teacher_weights: w, one for each teacher, scaled to sum to 1; by default equal.
        weighting: `fixed` weights, or `rlrd`, sampled by RLRD's policy, whose reward is a low loss.
        policy: `sound`, or `code` for RLRD's policy as in the public code, with its slips. `code`
            learns within training steps (`Objective`), and needs two teachers.
        policy_horizon: Number of steps between updates of RLRD's policy.
        policy_rows: Number of rows of a complete batch, which the policy `code` reads.
        weights_from: Name of an earlier loss with the same teachers whose weights are reused.
        temperature: t, temperature of the student.
        teacher_temperature: t', temperature of the teachers; by default t.
    """

    exclude_self: ClassVar[bool] = False
    """Whether each anchor's own candidate is left out of its list."""
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "candidates")

    anchor: str = "anchor"
    candidates: str = "twin"
    teachers: tuple[str, ...] = ("a",)
    teacher_weights: tuple[float, ...] = ()
    weighting: Literal["fixed", "rlrd"] = "fixed"
    policy: Literal["sound", "code"] = "sound"
    policy_horizon: int = 125
    policy_rows: int = 128
    weights_from: str = ""
    temperature: float = 0.05
    teacher_temperature: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature", "teacher_temperature")
        check_least(self, 2, "policy_horizon", "policy_rows")
        if not self.teachers:
            raise ValueError("at least one teacher is needed")
        if self.teacher_weights and len(self.teacher_weights) != len(self.teachers):
            raise ValueError(
                f"{len(self.teachers)} teachers, but {len(self.teacher_weights)} teacher_weights"
            )
        if self.teacher_weights:
            smallest = min(self.teacher_weights)
            if smallest < 0 or sum(self.teacher_weights) <= 0:
                raise ValueError("teacher_weights must not be negative, nor all zero")
        if self.weights_from and (self.teacher_weights or self.weighting != "fixed"):
            raise ValueError(
                "weights_from takes another loss's weights: leave out teacher_weights and weighting"
            )
        if self.weighting != "fixed" and (self.teacher_weights or len(self.teachers) < 2):
            raise ValueError(
                f"weighting '{self.weighting}' is for several teachers without teacher_weights"
            )

        learned_as_coded = self.weighting == "rlrd" and self.policy == "code"
        if learned_as_coded and len(self.teachers) != 2:
            raise ValueError("policy 'code' is for two teachers")

    @property
    def needs_complete_batch(self) -> bool:
        """Whether the weights of the teachers are learned, from one loss in each optimiser step."""
        return self.weighting == "rlrd"

    def module(self, build: LossBuildContext) -> LossModule | None:
        """Return the module that weighs the teachers; None if the weights are fixed."""
        if self.weighting == "fixed":
            return None
        if self.policy == "code":
            return CodePolicyWeights(
                build.width, self.policy_rows, build.seed, horizon=self.policy_horizon
            )
        return PolicyWeights(len(self.teachers), build.seed, horizon=self.policy_horizon)

    def list_losses(self, student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
        """Return the loss of each list, (n,); there is one list for each anchor.

        Args:
            student: Cosines of the student over its temperature, (n, c).
            teacher: Cosines of the teacher over its temperature, (n, c).
            mask: True for the candidates in each anchor's list, (n, c).
        """
        raise NotImplementedError

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; needs O(b B d) time and O(b B) memory for each teacher and the b own anchors."""
        module: PolicyWeights | CodePolicyWeights | None = context.modules.get(self.name)
        lists = self._lists(embeddings, present, context)
        if lists is None:
            zero = self.zero(embeddings)
            if module is None:
                return zero
            return LossOutput(zero.value + module.zero().to(zero.value.dtype))
        student, teachers, mask = lists
        reports: dict[str, Tensor] = {}
        # At fewer dimensions, the weights of the full embeddings are reused, and not learned again.
        learning = module if context.teacher_weights is None else None
        if context.teacher_weights is not None:
            weights = context.teacher_weights.to(student)
        elif learning is None:
            weights = self._fixed_weights(student)
        else:
            if isinstance(learning, CodePolicyWeights):
                weights = self._code_weights(learning, embeddings, present, context)
            else:
                features = self._features(student, teachers, mask, context)
                weights = learning.choose(features)
            weights = weights.to(student.dtype)
            for name, weight in zip(self.teachers, weights, strict=True):
                reports[f"weight_{name}"] = weight.detach()
        teacher = torch.einsum("k,kij->ij", weights, teachers)
        correlations = _correlations(student, teacher, mask)
        reports |= mean_reports({"correlation": (correlations.sum(), len(mask))}, context)
        losses = self.list_losses(student, teacher, mask)
        loss = global_mean(losses.sum(), len(losses), context)
        if isinstance(learning, PolicyWeights):
            weight_loss = learning.learn(loss).to(loss.dtype)
            # It trains the policy, but does not change the value of the loss.
            loss = loss + (weight_loss - weight_loss.detach())
        return LossOutput(loss, reports, weights.detach())

    def _fixed_weights(self, student: Tensor) -> Tensor:
        """Return the given or equal weights of the teachers, (K,), which sum to 1."""
        fixed = self.teacher_weights or (1.0,) * len(self.teachers)
        shares = [weight / sum(fixed) for weight in fixed]
        return move(torch.tensor(shares, dtype=student.dtype, device="cpu"), student.device)

    @torch.no_grad()
    def _code_weights(
        self,
        policy: CodePolicyWeights,
        embeddings: Embeddings,
        present: Embeddings,
        context: Context,
    ) -> Tensor:
        """Return the weights (2,) of the public code's policy.

        It reads complete batches only; others use the previous weights again. Each process has it
        read the global batch, so that all of them sample the same weights.
        """
        views = [embeddings[self.anchor], embeddings[self.candidates]]
        complete = bool(present[self.anchor].all()) and bool(present[self.candidates].all())
        if not complete or len(views[0]) != policy.rows:
            return policy.choose_again(len(context.host_rows(present, *self.views)))
        rows = torch.arange(policy.rows, device=views[0].device)
        student = self._cosines(embeddings, rows, rows) / self.temperature
        mask = torch.ones_like(student, dtype=torch.bool)
        if self.exclude_self:
            mask = rows[:, None] != rows[None]
        lists = []
        losses = []
        for name in self.teachers:
            cosines = self._cosines(context.teachers[name], rows, rows).to(student.dtype)
            ranked = cosines / (self.teacher_temperature or self.temperature)
            lists.append(ranked)
            losses.append(self.list_losses(student, ranked, mask).mean())
        return policy.choose(
            PolicyState(torch.stack(views), torch.stack(lists), torch.stack(losses))
        )

    @torch.no_grad()
    def _features(
        self, student: Tensor, teachers: Tensor, mask: Tensor, context: Context
    ) -> Tensor:
        """Return the policy's features of each teacher: relative loss and correlation, (K, 2)."""
        sums = []
        for teacher in teachers:
            losses = self.list_losses(student, teacher, mask).sum()
            correlation = _correlations(student, teacher, mask).sum()
            sums.append(torch.stack([losses, correlation]))
        totals = torch.stack(sums)
        means = context.processes.mean(totals, torch.full_like(totals, float(len(mask))))
        losses, correlations = means.unbind(dim=1)
        relative = losses / losses.mean().clamp(min=1e-12)
        return torch.stack([relative, correlations], dim=1)

    def _lists(
        self, embeddings: Embeddings, present: Embeddings, context: Context
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return the lists of the student (n, c) and all teachers (K, n, c), and their mask (n, c).

        They are those of the anchors of this process. None if no anchor of any process has a
        candidate.
        """
        rows = context.host_rows(present, self.anchor)
        columns = context.host_rows(present, self.candidates)
        lengths = torch.full_like(rows, len(columns))
        if self.exclude_self:
            lengths = lengths - torch.isin(rows, columns).to(lengths.dtype)
        rows = rows[lengths > 0]
        if not len(rows):
            return None
        rows = rows[own_positions(rows, len(present[self.anchor]), context)]
        mask = torch.ones(len(rows), len(columns), dtype=torch.bool, device="cpu")
        if self.exclude_self:
            mask = rows[:, None] != columns[None]
        device = embeddings[self.anchor].device
        rows = move(rows, device)
        columns = move(columns, device)
        mask = move(mask, device)

        all_rows = context.processes.all_rows
        shared = {view: all_rows(embeddings[view]) for view in self.views}
        student = self._cosines(shared, rows, columns)
        cosines = []
        for teacher in self.teachers:
            vectors = context.teachers[teacher]
            cosines.append(self._cosines(vectors, rows, columns).to(student.dtype))
        teachers = torch.stack(cosines).detach() / (self.teacher_temperature or self.temperature)
        return student / self.temperature, teachers, mask

    def _cosines(self, vectors: Embeddings, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the cosines of anchors and candidates, (rows, columns)."""
        anchors = vectors[self.anchor][rows]
        candidates = vectors[self.candidates][columns]
        return F.normalize(anchors, dim=-1) @ F.normalize(candidates, dim=-1).T


@torch.no_grad()
def _correlations(student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Return the Pearson correlation of student and teacher in each list, (n,)."""
    return F.cosine_similarity(_centred(student, mask), _centred(teacher, mask), dim=1)


def _centred(lists: Tensor, mask: Tensor) -> Tensor:
    """Return each list minus its mean, and 0 outside it; cosines are then Pearson correlations."""
    means = (lists * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True)
    return (lists - means) * mask


@dataclass(frozen=True, kw_only=True)
class ListNetLoss(DistillationLoss):
    r"""Cross-entropy of the top-1 distributions of teacher and student (Cao et al., ICML 2007).

    .. math:: L_i = -\sum_{j \ne i} \mathrm{softmax}(T_i)_j \log \mathrm{softmax}(S_i)_j

    averaged over the anchors. For a fixed teacher it is minimal if the student's list equals the
    teacher's up to a constant.

    Example:
        >>> teacher = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> context = Context(teachers={"a": {"anchor": teacher, "twin": teacher}})
        >>> for student in (teacher, teacher[[0, 2, 1]]):
        ...     print(f"{ListNetLoss(temperature=0.5)(student, student, context=context).value:.3f}")
        0.556
        1.106
    """

    kind: ClassVar[str] = "list_net"

    exclude_self: ClassVar[bool] = True

    def list_losses(self, student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
        """See the class."""
        log_student = F.log_softmax(student.masked_fill(~mask, -math.inf), dim=1)
        target = F.softmax(teacher.masked_fill(~mask, -math.inf), dim=1)
        return -(target * log_student.masked_fill(~mask, 0)).sum(dim=1)


# Its exponential is exactly 0, and unlike -inf it leaves no NaN in gradients.
_FAR_BELOW = -1e4


@dataclass(frozen=True, kw_only=True)
class ListMLELoss(DistillationLoss):
    r"""Negative log-likelihood of the teacher's ranking π under Plackett-Luce (ListMLE, RankCSE).

    Source: Xia et al., ICML 2008.

    .. math:: L_i = \sum_k \Big[ \log \sum_{l \ge k} e^{S_{i,\pi(l)}} - S_{i,\pi(k)} \Big]

    averaged over the anchors. The sum over a list of N grows with N log N; the mean per position
    depends little on the batch size, so that the weight of the loss can stay the same. Ties of the
    teacher keep the order of the batch.

    The public code of RankCSE adds 1e-7 inside the logarithm after subtracting the maximum of the
    row: candidates whose cosine is about 0.8 below the maximum are then not ranked, only
    pushed up. `epsilon` gives that form.

    Attributes:
        reduction: `list` sums over the positions of a list, `position` averages over them.
        epsilon: Summand inside the logarithm (1e-7 in the public code); 0 for the exact likelihood.

    Example:
        >>> teacher = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> context = Context(teachers={"a": {"anchor": teacher, "twin": teacher}})
        >>> for student in (teacher, teacher[[0, 2, 1]]):
        ...     print(f"{ListMLELoss(temperature=0.5)(student, student, context=context).value:.3f}")
        0.921
        1.988
    """

    kind: ClassVar[str] = "list_mle"

    reduction: Literal["list", "position"] = "list"
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 0, "epsilon")

    def list_losses(self, student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
        """See the class."""
        ranked = teacher.masked_fill(~mask, -torch.inf)
        order = ranked.sort(dim=1, descending=True, stable=True).indices
        # Candidates outside the list come last.
        mask = mask.gather(1, order)
        scores = student.gather(1, order).masked_fill(~mask, _FAR_BELOW)
        if self.epsilon:
            scores = scores - scores.max(dim=1, keepdim=True).values
            log_rest = (scores.exp().flip(1).cumsum(1).flip(1) + self.epsilon).log()
        else:
            log_rest = scores.flip(1).logcumsumexp(1).flip(1)
        nll = (log_rest - scores).masked_fill(~mask, 0).sum(dim=1)
        if self.reduction == "position":
            nll = nll / mask.sum(dim=1)
        return nll


# The smallest probability in the public code of RankCSE.
_CODE_FLOOR = 1e-7


@dataclass(frozen=True, kw_only=True)
class RankingConsistencyLoss(Loss):
    r"""Jensen-Shannon divergence of the top-1 distributions of two views (RankCSE eq. 5-6).

    With p_i = softmax_j c(a_i, p_j)/t and q_i = softmax_j c(p_i, a_j)/t over the rows that have
    both views,

    .. math:: L = \frac 1n \sum_i \tfrac12 KL(p_i \| m_i) + \tfrac12 KL(q_i \| m_i), \quad m_i = (p_i + q_i)/2

    which is symmetric, at most log 2, and zero for equal lists. The public code of RankCSE clamps
    log m from *below* at 1e-7, so that the mixture vanishes and -(H(p) + H(q))/2 remains: it
    maximises the entropy of both lists, whether they agree or not. That form is available as
    `entropy`.

    Attributes:
        anchor: One view.
        positive: The other view of the same sentences.
        temperature: t.
        form: `jensen_shannon`, or `entropy` for the form of the public code.

    Example:
        >>> anchor = torch.eye(3)
        >>> loss = RankingConsistencyLoss(temperature=0.5)
        >>> f"{loss(anchor, anchor).value:.3f}, {loss(anchor, anchor.roll(1, 0)).value:.3f}"
        '0.000, 0.293'
    """

    kind: ClassVar[str] = "ranking_consistency"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive")

    anchor: str = "anchor"
    positive: str = "twin"
    temperature: float = 0.05
    form: Literal["jensen_shannon", "entropy"] = "jensen_shannon"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature")

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; needs O(b B d) time and O(b B) memory for the b rows of this process."""
        host_rows = context.host_rows(present, self.anchor, self.positive)
        if not len(host_rows):
            return self.zero(embeddings)
        rows = move(host_rows, context.device)
        size = len(present[self.anchor])
        own = move(own_positions(host_rows, size, context), context.device)
        all_rows = context.processes.all_rows
        a = F.normalize(all_rows(embeddings[self.anchor])[rows], dim=-1)
        b = F.normalize(all_rows(embeddings[self.positive])[rows], dim=-1)
        scores = a[own] @ b.T / self.temperature
        if len(own) == len(rows):
            opposite = scores.T
        else:
            opposite = b[own] @ a.T / self.temperature

        log_p = F.log_softmax(scores, dim=1)
        log_q = F.log_softmax(opposite, dim=1)
        if self.form == "entropy":
            entropies = (_negative_entropy(log_p) + _negative_entropy(log_q)) / 2
            return LossOutput(global_mean(entropies.sum(), len(own), context))
        log_m = torch.logaddexp(log_p, log_q) - math.log(2)
        from_p = log_p.exp() * (log_p - log_m)
        from_q = log_q.exp() * (log_q - log_m)
        divergence = (from_p + from_q).sum(dim=1) / 2
        agree = log_p.argmax(dim=1) == log_q.argmax(dim=1)
        reports = mean_reports({"same_first": (agree.to(scores.dtype).sum(), len(own))}, context)
        return LossOutput(global_mean(divergence.sum(), len(own), context), reports)


def _negative_entropy(log_probabilities: Tensor) -> Tensor:
    """Return Σ p (log p - 1e-7) of each row, with p clamped at 1e-7, as in the public code."""
    p = log_probabilities.exp().clamp(min=_CODE_FLOOR)
    return (p * (p.log() - _CODE_FLOOR)).sum(dim=1)
