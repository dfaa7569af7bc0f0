"""WordPiece vocabularies, and the properties of a vocabulary that masking needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.errors import OpencseError
from opencse.pretraining.settings import Vocabulary

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(texts: Callable[[], Iterable[str]], settings: Vocabulary, max_length: int) -> Any:
    """Learn a WordPiece vocabulary, and return a BERT tokenizer with it.

    The same texts give the same vocabulary. The trainer alone does not ensure this: it numbers the characters that
    continue a word in the order of a hash table, and breaks ties by these numbers. So the characters are counted and
    numbered here, and the trainer only learns how to merge them.

    Args:
        texts: Function that returns the sentences; called twice.
        settings: Size, case and alphabet.
        max_length: Maximum input length of the model in tokens.

    Raises:
        OpencseError: The texts are too few for a vocabulary of this size, or it is too small for the alphabet.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertTokenizer

    normalizer = normalizers.BertNormalizer(lowercase=settings.lowercase)
    splitter = pre_tokenizers.BertPreTokenizer()
    first, later = _alphabet(texts(), normalizer, splitter, settings.alphabet)
    fixed = [*SPECIAL, *first, *(f"##{c}" for c in later)]
    if len(fixed) > settings.size:
        raise OpencseError(
            f"vocabulary.size = {settings.size} is too small for the {len(fixed)} single characters of the corpus",
            "Raise it, or lower vocabulary.alphabet.",
        )

    def tokenizer_of(vocabulary: dict[str, int]) -> Tokenizer:
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
        return tokenizer

    raw = tokenizer_of({})
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.size,
        initial_alphabet=first,
        limit_alphabet=len(first),
        special_tokens=fixed,  # these keep their order
        show_progress=False,
    )
    raw.train_from_iterator(texts(), trainer)
    if raw.get_vocab_size() < settings.size:
        raise OpencseError(
            f"the corpus yields only {raw.get_vocab_size()} word pieces, not vocabulary.size = {settings.size}",
            "Pass more text, or a smaller size with --set vocabulary.size=…",
        )
    tokenizer = tokenizer_of(raw.get_vocab())
    tokenizer.decoder = decoders.WordPiece()
    ends = [(t, SPECIAL.index(t)) for t in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return BertTokenizer(tokenizer_object=tokenizer, model_max_length=max_length, do_lower_case=settings.lowercase)


def _alphabet(texts: Iterable[str], normalizer: Any, splitter: Any, limit: int) -> tuple[list[str], list[str]]:
    """Return the most frequent characters, and those of them that occur within words; each list in code point order."""
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    counts: Counter[str] = Counter()
    later: set[str] = set()
    for word, count in words.items():
        for character in word:
            counts[character] += count
        later.update(word[1:])
    kept = sorted(sorted(counts, key=lambda c: (-counts[c], c))[:limit])
    return kept, [c for c in kept if c in later]


@dataclass(frozen=True)
class Pieces:
    """The properties of a vocabulary that masking needs.

    Attributes:
        mask_id: The id of the mask token.
        starts: Mask of the pieces that begin a word, (vocabulary,).
        ordinary: Ids of all pieces that are not special tokens, ascending.
        special: Mask of the special tokens, (vocabulary,).
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
            OpencseError: The tokenizer has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise OpencseError(
                "the tokenizer has no mask token, which masking needs", "Choose a model of the BERT family."
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
        special[len(tokens) :] = True  # rows of the embedding table without a token
        starts[special] = True
        return cls(tokenizer.mask_token_id, starts, np.flatnonzero(~special), special)
