"""TSDAE: a decoder writes the sentence again from the vector of its damaged version."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import Context, Embeddings, Loss, LossBuildContext, LossOutput
from opencse.losses.forgetting import VocabularyModule, masked_lm_head, predicted_words


@dataclass(frozen=True, kw_only=True)
class DenoisingAutoencoderLoss(Loss):
    r"""Reconstruction of a sentence from the vector h of a version with deleted words.

    .. math:: L = -\frac{1}{T} \sum_t \log p(x_t \mid x_{<t}, h)

    over all tokens but the first. The decoder sees nothing of the sentence but h, through
    cross-attention to a single position. Source: Wang et al., TSDAE (Findings of EMNLP 2021), and
    `DenoisingAutoEncoderLoss` of sentence-transformers. The decoder's self-attention, feed-forward
    layers and embeddings are the encoder's own weights; only the cross-attention and the
    prediction head are its own. They are trained and not exported.

    Attributes:
        damaged: View whose vector is read.
        sentence: View whose tokens are written.

    Example:
        >>> loss = DenoisingAutoencoderLoss()
        >>> loss.views, loss.tokens
        (('damaged', 'anchor'), ('anchor',))
    """

    kind: ClassVar[str] = "denoising_autoencoder"
    view_fields: ClassVar[tuple[str, ...]] = ("damaged", "sentence")
    compares_embeddings: ClassVar[bool] = False

    damaged: str = "damaged"
    sentence: str = "anchor"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sentence that is written."""
        return (self.sentence,)

    def module(self, build: LossBuildContext) -> VocabularyModule:
        """Return the decoder."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer from which a decoder could be made")
        head = masked_lm_head(build.masked_lm("backbone"))
        return _SentenceDecoder(build.transformer, head, build.tokenizer, build.width)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one pass of the decoder over the rows of this process."""
        decoder: _SentenceDecoder = context.modules[self.name]
        ids, mask = context.tokens[self.sentence]
        vectors = context.processes.own_rows(context.vectors[self.damaged])
        there = mask.any(dim=1) & context.processes.own_rows(present[self.damaged])
        written = ids[there]
        counted = mask[there].bool()
        # Nothing comes before the first token, from which it could be predicted.
        counted[:, 0] = False
        logits = None
        if there.any():
            with context.precision():
                logits = decoder(
                    move(written, context.device),
                    vectors[true_cells(there, context.device)],
                    counted,
                )
        nothing = vectors.sum() * 0 + decoder.zero()
        return predicted_words(nothing, logits, written[counted], context)


class _SentenceDecoder(VocabularyModule):
    """A decoder that shares the weights of the encoder.

    Args:
        transformer: The transformer of the encoder, which remains part of it.
        head: A masked-LM head, from hidden states to logits.
        tokenizer: Tokenizer of the encoder.
        width: Size of the sentence vectors.

    Raises:
        OpencseError: The architecture has no decoder with cross-attention.
    """

    def __init__(self, transformer: nn.Module, head: nn.Module, tokenizer: Any, width: int) -> None:
        super().__init__(tokenizer)
        config: Any = copy.deepcopy(transformer.config)
        if config.hidden_size != width:
            raise ValueError(f"sentence vectors have {width} numbers, not {config.hidden_size}")
        config.is_decoder = True
        config.add_cross_attention = True
        decoder: Any = type(transformer)(config)
        own = {name: p for name, p in decoder.named_parameters() if "crossattention" in name}
        if not own:
            name = type(transformer).__name__
            raise OpencseError(
                f"a {name} has no decoder with cross-attention", "Choose a BERT or a RoBERTa."
            )
        shared = dict(transformer.named_parameters())
        for name in dict(decoder.named_parameters()):
            if name in shared:
                _replace_parameter(decoder, name, shared[name])
        # In a tuple, which PyTorch does not search: most of its weights belong to the encoder.
        self._decoder = (decoder,)
        self.cross_attention = nn.ModuleList(
            layer.crossattention for layer in decoder.encoder.layer
        )
        self.head = head

    def train(self, mode: bool = True) -> _SentenceDecoder:
        """Set the mode of the decoder too, which PyTorch does not know as a part."""
        self._decoder[0].train(mode)
        return super().train(mode)

    def forward(self, ids: Tensor, vectors: Tensor, counted: Tensor) -> Tensor:
        """Return the logits of the counted tokens, each given those before it, (tokens, vocabulary).

        Args:
            ids: Token ids, (n, L).
            vectors: Sentence vectors, (n, width).
            counted: Which tokens to predict, (n, L) bool, on the CPU; never the first.
        """
        output = self._decoder[0](
            input_ids=ids[:, :-1],
            encoder_hidden_states=vectors[:, None],
            use_cache=False,
        )
        hidden = output.last_hidden_state.flatten(0, 1)
        return self.head(hidden[true_cells(counted[:, 1:], hidden.device)])


def _replace_parameter(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    """Let a module use the same parameter object as another one."""
    owner, _, last = name.rpartition(".")
    setattr(module.get_submodule(owner), last, parameter)
