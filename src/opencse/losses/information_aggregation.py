"""InfoCSE: the sentence vector helps to predict masked words."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Frozen,
    Loss,
    LossBuildContext,
    LossOutput,
)
from opencse.losses.forgetting import (
    VocabularyModule,
    mask_tokens,
    masked_lm_head,
    predicted_words,
    sample_tokens,
)


@dataclass(frozen=True, kw_only=True)
class InformationAggregationLoss(Loss):
    r"""Masked language modelling by a small network that reads the sentence vector.

    .. math:: L = -\frac{1}{|M|} \sum_{t \in M} \log p(x_t \mid h, \tilde{h}_1, …, \tilde{h}_n)

    The lower layers of the initial encoder, frozen, read the sentence with some tokens M masked. The
    sentence vector h takes the place of their first state, and a few new layers with a masked-LM
    head predict the masked tokens. What the lower layers cannot say, h has to. Source: Wu et al.,
    InfoCSE (EMNLP 2022) and its code, which uses a weight of 1e-5.

    h is the vector before any projector. Only encoders whose layers can be run alone are supported
    (BERT, RoBERTa, ELECTRA and relatives).

    Attributes:
        sentence: View whose vector and tokens are read.
        lower_layers: Number of frozen layers that read the masked sentence.
        new_layers: Number of new layers, which start from random weights.
        ratio: Probability of masking a content token.
        masking: `bert` for BERT's 80/10/10, or `mask`.

    Example:
        >>> loss = InformationAggregationLoss(weight=1e-5)
        >>> loss.views, loss.tokens
        (('anchor',), ('anchor',))
    """

    kind: ClassVar[str] = "information_aggregation"
    view_fields: ClassVar[tuple[str, ...]] = ("sentence",)
    compares_embeddings: ClassVar[bool] = False

    sentence: str = "anchor"
    lower_layers: int = 6
    new_layers: int = 2
    ratio: float = 0.4
    masking: Literal["mask", "bert"] = "bert"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "lower_layers", "new_layers")
        check_range(self, "(0, 1)", "ratio")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sentence, whose tokens are masked."""
        return (self.sentence,)

    def module(self, build: LossBuildContext) -> VocabularyModule:
        """Return the frozen lower layers, the new layers and the masked-LM head."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer whose layers could be used")
        head = masked_lm_head(build.masked_lm("backbone"))
        return _AggregationNetwork(
            build.transformer, head, build.tokenizer, self.lower_layers, self.new_layers
        )

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; a pass of the lower layers without, and of the new ones with a gradient."""
        network: _AggregationNetwork = context.modules[self.name]
        ids, mask = context.tokens[self.sentence]
        there = mask.any(dim=1)
        vectors = context.processes.own_rows(context.vectors[self.sentence])
        draws = context.draws_for(self.name, len(ids))
        chosen = sample_tokens(network.is_content(ids) & mask.bool(), self.ratio, draws)
        masked = mask_tokens(ids, chosen, network.mask_id, network.vocabulary, self.masking, draws)
        logits = None
        if chosen.any():
            with context.precision():
                logits = network(
                    move(masked[there], context.device),
                    move(mask[there], context.device),
                    vectors[true_cells(there, context.device)],
                    chosen[there],
                )
        nothing = vectors.sum() * 0 + network.zero()
        return predicted_words(nothing, logits, ids[chosen], context)


class _AggregationNetwork(VocabularyModule):
    """The auxiliary network of InfoCSE.

    Args:
        transformer: A transformers encoder; its lower layers are copied.
        head: A masked-LM head, from hidden states to logits.
        tokenizer: Tokenizer of the encoder.
        lower_layers: Number of frozen layers.
        new_layers: Number of new layers.
    """

    def __init__(
        self,
        transformer: nn.Module,
        head: nn.Module,
        tokenizer: Any,
        lower_layers: int,
        new_layers: int,
    ) -> None:
        super().__init__(tokenizer)
        config: Any = copy.deepcopy(transformer.config)
        layers = getattr(getattr(transformer, "encoder", None), "layer", None)
        if layers is None:
            raise OpencseError(
                f"the layers of a {type(transformer).__name__} cannot be run alone",
                "Choose a BERT or a RoBERTa.",
            )
        if lower_layers > len(layers):
            raise ValueError(f"lower_layers is {lower_layers}, but the encoder has {len(layers)}")
        lower: Any = copy.deepcopy(transformer).eval()
        lower.encoder.layer = lower.encoder.layer[:lower_layers]
        self._lower = Frozen(lower)
        config.num_hidden_layers = new_layers
        small: Any = type(transformer)(config)
        self.layers: nn.Module = small.encoder
        self.head = head

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor, chosen: Tensor) -> Tensor:
        """Return the logits (chosen tokens, vocabulary).

        Args:
            ids: Masked token ids, (n, L).
            mask: Attention mask, (n, L).
            vectors: Sentence vectors, (n, width).
            chosen: The tokens to predict, (n, L) bool, on the CPU.
        """
        with torch.no_grad():
            states = self._lower.module(input_ids=ids, attention_mask=mask).last_hidden_state
        # The sentence vector takes the place of the first token.
        first = vectors[:, None].to(states.dtype)
        states = torch.cat([first, states[:, 1:]], dim=1)
        # Added to the scores of attention: 0 for a token, the smallest number for padding.
        padding = 1.0 - mask[:, None, None, :].to(states.dtype)
        unseen = padding * torch.finfo(states.dtype).min
        output = self.layers(states, attention_mask=unseen, return_dict=True)
        hidden = output.last_hidden_state.flatten(0, 1)
        cells = true_cells(chosen, hidden.device)
        return self.head(hidden[cells])
