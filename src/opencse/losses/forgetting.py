"""Losses against forgetting: recall of the initial weights (OssCSE), masked LM (SimCSE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.draws import RowDraws
from opencse.foundation.numbers import check_range
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Frozen,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
)


@dataclass(frozen=True, kw_only=True)
class RecallLoss(Loss):
    r"""L2 penalty on the distance of the encoder's weights from their initial values (L2-SP).

    .. math:: L = \frac{\gamma}{2} \sum_k (\theta_k - \theta^*_k)^2

    over all weights of the pre-trained encoder, including embeddings, biases and LayerNorms, but
    not those of the pooler, which these systems do not use, nor those of losses or of a projector
    that is not kept. Source: OssCSE eq. 4, a Laplace approximation of the pre-training posterior
    with an isotropic Fisher matrix. It is a sum, because the mean over so many weights would be
    negligible.

    The gradient γ(θ − θ*) is computed for each weight directly, so that no tensor of the size of
    the encoder enters the graph; it costs one more copy of the weights.

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

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the weights with copies of their initial values."""
        weights = {}
        for name, weight in build.encoder.named_parameters():
            if "pooler." not in name:
                weights[name] = weight
        return InitialWeights(weights)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; linear in the number of weights, in time and memory."""
        module: InitialWeights = context.modules[self.name]
        # Frozen weights, such as those that nothing depends on, have no gradient.
        pairs = [(weight, start) for weight, start in module.pairs if weight.requires_grad]
        weights = [weight for weight, _ in pairs]
        initial = tuple(start for _, start in pairs)
        squares = _SquaredDistance.apply(initial, *weights)  # type: ignore[no-untyped-call]
        return LossOutput(self.gamma / 2 * squares, {"distance": squares.detach().sqrt()})


class InitialWeights(LossModule):
    """Weights of the encoder, with frozen copies of their initial values.

    Args:
        named: The weights by name.
    """

    def __init__(self, named: dict[str, nn.Parameter]) -> None:
        super().__init__()
        self.names = tuple(named)
        # In a tuple, because the encoder registers and saves them.
        self._weights = tuple(named.values())
        self._copies = Frozen(nn.ParameterList(p.detach().clone() for p in named.values()))

    @property
    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Each weight with its initial value."""
        return list(zip(self._weights, self._copies.module.parameters(), strict=True))


class _SquaredDistance(torch.autograd.Function):
    """Σ(θ − θ*)², whose gradient is computed in the backward pass, one weight after another."""

    @staticmethod
    def forward(ctx: Any, initial: tuple[Tensor, ...], *weights: Tensor) -> Tensor:
        ctx.initial = initial
        ctx.weights = weights
        total = weights[0].new_zeros((), dtype=torch.float64)
        for weight, start in zip(weights, initial, strict=True):
            total += torch.dist(weight, start).double() ** 2
        return total.to(weights[0].dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        factor = 2 * gradients[0]
        gradients_of_weights = []
        for weight, start in zip(ctx.weights, ctx.initial, strict=True):
            gradients_of_weights.append((weight - start).mul_(factor))
        # None for `initial`.
        return (None, *gradients_of_weights)


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelLoss(Loss):
    r"""Masked language modelling with the trained encoder.

    .. math:: L = -\frac{1}{|M|} \sum_{t \in M} \log p_\theta(x_t \mid \tilde{x})

    over the masked content tokens M of the batch. The head is that of the initial model, and is
    trained with the encoder. Source: Gao et al., SimCSE (EMNLP 2021), §3 and its code, with a
    weight of 0.1.

    Attributes:
        sentences: Views whose tokens are masked and predicted.
        ratio: Probability of masking a content token.
        masking: `bert` for BERT's 80/10/10, or `mask`.

    Example:
        >>> loss = MaskedLanguageModelLoss(sentences=("anchor",), weight=0.1)
        >>> loss.tokens  # it reads token ids as well, and builds its head with `module`
        ('anchor',)
    """

    kind: ClassVar[str] = "masked_language_model"
    view_fields: ClassVar[tuple[str, ...]] = ("sentences",)
    compares_embeddings: ClassVar[bool] = False

    sentences: tuple[str, ...] = ("anchor", "twin")
    ratio: float = 0.15
    masking: Literal["mask", "bert"] = "bert"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sentences or len(set(self.sentences)) != len(self.sentences):
            raise ValueError("sentences must name at least one view, and none twice")
        check_range(self, "(0, 1)", "ratio")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose tokens are read."""
        return self.sentences

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the masked-LM head."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer for masked language modelling")
        head = masked_lm_head(build.masked_lm("backbone"))
        return _MaskedLanguageHead(build.transformer, head, build.tokenizer)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more pass of the encoder for each view."""
        module: _MaskedLanguageHead = context.modules[self.name]
        total = embeddings[self.sentences[0]].sum() * 0
        count = total.new_zeros(())
        correct = total.new_zeros(())
        for view in self.sentences:
            ids, mask = context.tokens[view]
            draws = context.draws_for(f"{self.name} {view}", len(ids))
            chosen = sample_tokens(module.is_content(ids) & mask.bool(), self.ratio, draws)
            masked = mask_tokens(
                ids, chosen, module.mask_id, module.vocabulary, self.masking, draws
            )
            nonempty = mask.any(1)
            if not nonempty.any():
                total = total + module.zero()
                continue
            inputs = move(masked[nonempty], total.device)
            attended = move(mask[nonempty], total.device)
            with context.precision():
                logits = module(inputs, attended, chosen[nonempty])
            if logits.dtype != torch.float64:
                logits = logits.float()
            labels = move(ids[chosen], total.device)
            total = total + F.cross_entropy(logits, labels, reduction="sum")
            count = count + len(labels)
            correct = correct + (logits.argmax(-1) == labels).sum()
        reports = {"accuracy": context.processes.mean(correct.detach(), count)}
        return LossOutput(context.processes.mean(total, count), reports)


def predicted_words(
    nothing: Tensor, logits: Tensor | None, words: Tensor, context: Context
) -> LossOutput:
    """Return the mean cross-entropy of predicted words over all processes, and the share of right ones.

    Args:
        nothing: A zero with a gradient for everything that is trained.
        logits: Logits of each word, (words, vocabulary); None if this process predicts none.
        words: Ids of the words, (words,), on the CPU.
        context: As given to the loss.
    """
    total = nothing
    correct = nothing.detach()
    count = nothing.new_full((), float(len(words)))
    if logits is not None:
        if logits.dtype != torch.float64:
            logits = logits.float()
        labels = move(words, logits.device)
        total = total + F.cross_entropy(logits, labels, reduction="sum")
        correct = (logits.argmax(dim=-1) == labels).sum().to(total.dtype)
    reports = {"accuracy": context.processes.mean(correct, count)}
    return LossOutput(context.processes.mean(total, count), reports)


def masked_lm_head(model: Any) -> nn.Module:
    """Return the head of a masked language model, from hidden states to logits.

    Raises:
        ValueError: The architecture is not known.
    """
    head = getattr(model, "cls", None) or getattr(model, "lm_head", None)
    # ModernBERT has its head and its decoder apart.
    if hasattr(model, "head") and hasattr(model, "decoder"):
        head = nn.Sequential(model.head, model.decoder)
    if not isinstance(head, nn.Module):
        raise ValueError(f"a {type(model).__name__} has no supported masked-LM head")
    return head


def sample_tokens(candidates: Tensor, ratio: float, draws: RowDraws) -> Tensor:
    """Return a mask that keeps each of the candidates, (n, L) bool, with probability `ratio`."""
    uniform = move(draws.uniform("chosen", candidates.shape[1]), candidates.device)
    return candidates & (uniform < ratio)


def mask_tokens(
    ids: Tensor,
    chosen: Tensor,
    mask_id: int,
    vocabulary: int,
    masking: Literal["mask", "bert"],
    draws: RowDraws,
) -> Tensor:
    """Return token ids (n, L) in which the chosen tokens are masked.

    Args:
        ids: Token ids, (n, L).
        chosen: (n, L) bool.
        mask_id: Id of the mask token.
        vocabulary: Size of the vocabulary.
        masking: `mask` replaces all of them by the mask token; `bert` replaces 80 % of them,
            replaces 10 % by random tokens, and keeps 10 %.
        draws: Random numbers of the n sequences.
    """
    if masking == "mask":
        return ids.masked_fill(chosen, mask_id)
    width = ids.shape[1]
    uniform = move(draws.uniform("kind", width), ids.device)
    random = move((draws.uniform("token", width) * vocabulary).long(), ids.device)
    # 80 % of the uniform numbers are below 0.8, and another 10 % below 0.9.
    masked = torch.where(uniform < 0.8, mask_id, torch.where(uniform < 0.9, random, ids))
    return torch.where(chosen, masked, ids)


class VocabularyModule(LossModule):
    """A module that knows the mask token and the special tokens of a tokenizer.

    Args:
        tokenizer: Tokenizer of the encoder.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self.vocabulary = len(tokenizer)
        self.mask_id: int = tokenizer.mask_token_id
        # Not a buffer, because it stays on the CPU.
        self._content = torch.ones(self.vocabulary, dtype=torch.bool)
        self._content[tokenizer.all_special_ids] = False

    def is_content(self, ids: Tensor) -> Tensor:
        """Return a mask of the ids that are not special tokens; both are on the CPU."""
        return self._content[ids]


class _MaskedLanguageHead(VocabularyModule):
    """The masked-LM head on the transformer of the encoder.

    Args:
        transformer: The transformer, which remains part of the encoder.
        head: Module from hidden states to logits.
        tokenizer: Tokenizer of the encoder.
    """

    def __init__(self, transformer: nn.Module, head: nn.Module, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        # In a tuple, so that PyTorch does not register it.
        self._transformer = (transformer,)
        self.head = head

    def forward(self, ids: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the logits (chosen tokens, vocabulary) of sequences (n, L).

        `chosen` should be on the CPU.
        """
        hidden = self._transformer[0](input_ids=ids, attention_mask=mask).last_hidden_state
        cells = true_cells(chosen, hidden.device)
        return self.head(hidden.flatten(0, 1)[cells])
