"""WordPiece vocabularies, and what masking has to know of any tokenizer's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.errors import OpencseError
from opencse.pretraining.settings import Vocabulary

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(texts: Iterable[str], settings: Vocabulary, max_length: int) -> Any:
    """Learn a WordPiece vocabulary and give BERT's tokenizer with it.

    The same texts give the same vocabulary.

    Args:
        texts: Sentences.
        settings: Size, case and alphabet.
        max_length: Longest input of the model, in tokens.

    Raises:
        OpencseError: The texts are too few for a vocabulary of this size.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=settings.lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size,
        limit_alphabet=settings.alphabet,
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() < settings.size:
        raise OpencseError(
            f"the corpus yields only {tokenizer.get_vocab_size()} word pieces, not vocabulary.size = {settings.size}",
            "Pass more text, or a smaller size with --set vocabulary.size=…",
        )
    tokenizer.decoder = decoders.WordPiece()
    first, last = (tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", first), ("[SEP]", last)]
    )
    return BertTokenizer(
        tokenizer_object=tokenizer, model_max_length=max_length, do_lower_case=settings.lowercase
    )


@dataclass(frozen=True)
class Pieces:
    """A tokenizer's vocabulary as masking sees it.

    Attributes:
        mask_id: The id of the mask token.
        starts: Whether a piece begins a word, (vocabulary,).
        ordinary: Ids of all pieces that are not special tokens, ascending.
        special: Whether an id is that of a special token, (vocabulary,).
    """

    mask_id: int
    starts: np.ndarray
    ordinary: np.ndarray
    special: np.ndarray

    @classmethod
    def of(cls, tokenizer: Any, rows: int | None = None) -> Pieces:
        """Read a transformers tokenizer, for a model with `rows` word embeddings.

        Continuations are recognised by `##` (WordPiece), or by the lack of a leading `Ġ` or `▁` (byte-level BPE,
        SentencePiece).

        Raises:
            OpencseError: It has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise OpencseError(
                "the tokenizer has no mask token, so that nothing can be masked", "Choose a model of the BERT family."
            )
        size = len(tokenizer) if rows is None else rows
        tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        marked = any(t is not None and t.startswith(("Ġ", "▁")) for t in tokens)
        starts, special = np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
        for i, token in enumerate(tokens):
            text = token or ""
            starts[i] = text.startswith(("Ġ", "▁")) if marked else not text.startswith("##")
            special[i] = token is None
        special[list(tokenizer.all_special_ids)] = True
        special[len(tokens) :] = True  # rows of the embedding table that no text can reach
        starts[special] = True
        return cls(tokenizer.mask_token_id, starts, np.flatnonzero(~special), special)
