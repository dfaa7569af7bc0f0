"""IS-BERT: mutual information of a sentence vector and the n-grams of its sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from opencse.foundation.errors import OpencseError
from opencse.losses.base import Context, Embeddings, Loss, LossOutput, mean_reports

_LOG_2 = math.log(2.0)


@dataclass(frozen=True, kw_only=True)
class MutualInformationLoss(Loss):
    r"""Jensen-Shannon estimate of the mutual information of sentence vectors g and token vectors l (Deep InfoMax).

    .. math:: L = \frac{1}{T (N - 1)} \sum_{t, j \ne s(t)} \left( \text{sp}(l_t \cdot g_j) - \log 2 \right)
        - \frac{1}{T} \sum_t \left( \log 2 - \text{sp}(-l_t \cdot g_{s(t)}) \right)

    sp is the softplus, s(t) the sentence of token t, T the number of tokens and N that of
    sentences. A token must tell its own sentence from the others. Source: Zhang et al., An
    Unsupervised Sentence Embedding Method by Mutual Information Maximization (EMNLP 2020), eq. 3
    and 4, and its code, which subtracts log 2.

    The token vectors are those that the encoder averages: with `ngrams` pooling, windows of 1, 3
    and 5 tokens.

    Attributes:
        anchor: View of the sentences.

    Example:
        >>> from opencse.losses import TokenOutputs
        >>> sentences = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
        >>> tokens = TokenOutputs(vectors=torch.eye(2), rows=torch.tensor([0, 1]))
        >>> context = Context(token_outputs={"anchor": tokens})
        >>> f"{MutualInformationLoss()(sentences, context=context).value:.3f}"
        '-0.566'
    """

    kind: ClassVar[str] = "mutual_information"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor",)
    # Not at shorter lengths (`dimensions`): the vectors of the tokens are complete ones.
    compares_embeddings: ClassVar[bool] = False

    anchor: str = "anchor"

    @property
    def token_outputs(self) -> tuple[str, ...]:
        """The sentences, of which the tokens are read."""
        return (self.anchor,)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; O(T N d) for the tokens of this process and all sentences."""
        if self.anchor not in context.token_outputs:
            raise OpencseError(
                f"loss '{self.name}': it was given no outputs of tokens",
                "Pass them: context=Context(token_outputs={…}).",
            )
        tokens = context.token_outputs[self.anchor]
        processes = context.processes
        sentences = processes.all_rows(embeddings[self.anchor])
        rows = context.rows(present, self.anchor)
        if len(rows) < 2:
            return LossOutput((sentences.sum() + tokens.vectors.sum()) * 0)

        # Tokens of this process against the sentences of all.
        scores = tokens.vectors.to(sentences.dtype) @ sentences[rows].T
        numbers = processes.own_rows(torch.arange(len(sentences), device="cpu"))
        first = int(numbers[0]) if len(numbers) else 0
        own = (tokens.rows + first)[:, None] == rows
        positives = ((_LOG_2 - F.softplus(-scores)) * own).sum()
        negatives = ((F.softplus(scores) - _LOG_2) * ~own).sum()
        right = (own & (scores == scores.amax(dim=1, keepdim=True))).sum().to(scores.dtype)

        count = len(scores)
        sums = {
            "positive": (positives, count),
            "negative": (negatives, count * (len(rows) - 1)),
            "accuracy": (right, count),
        }
        means = mean_reports(sums, context)
        reports = {name: mean.detach() for name, mean in means.items()}
        return LossOutput(means["negative"] - means["positive"], reports)
