"""Insertion and substitution of words that a masked language model finds likely (OssCSE §3.2)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from opencse.text.syntax import Edit, apply_edits
from opencse.text.views.registry import (
    BuiltView,
    Constructor,
    ConstructorSpec,
    SourceRow,
    bundle_digest,
    row_random,
    with_error_rate,
)

_SENTENCES = 64  # in one forward pass, at most
_TOKENS = 512  # in one forward pass: enough for full speed, and the scores over the vocabulary take 60 MB


class WordPredictor:
    """A masked language model with its tokenizer, in eval mode.

    Args:
        name: A local folder or a hub id.
        precision: "fp32", "bf16", or "auto": whichever multiplies faster on this machine.
    """

    def __init__(self, name: str, *, precision: Literal["auto", "fp32", "bf16"] = "fp32") -> None:
        import torch

        from opencse.encoder.device import choose_device, resolve_precision
        from opencse.encoder.loading import load_masked_lm
        from opencse.foundation.tensors import tensors_hash

        self.model, self.tokenizer = load_masked_lm(name)
        self.device = str(choose_device())
        self.model.to(self.device)
        vocabulary = repr(sorted(self.tokenizer.get_vocab().items()))
        self.digest = bundle_digest(vocabulary, tensors_hash(self.model.state_dict()))
        if resolve_precision(precision, self.model.config, self.device) == "bf16":
            self.model.to(torch.bfloat16)
        output = self.model.get_output_embeddings()
        if isinstance(output, torch.nn.Linear):
            # Only the hidden states of the positions to score go through the output layer.
            output.register_forward_pre_hook(lambda _, args: (args[0].flatten(0, 1)[self._wanted], *args[1:]))
        self.special = np.array(sorted(set(self.tokenizer.all_special_ids)))
        limit = getattr(self.model.config, "max_position_embeddings", 512) - 2
        self.max_length = min(limit, self.tokenizer.model_max_length)

    def encode(self, texts: Sequence[str], *, room: float = 0.0) -> Any:
        """Tokenise n texts with special tokens and offsets.

        Args:
            texts: n texts.
            room: Share of the maximum length that is kept free for insertions.
        """
        longest = int(self.max_length * (1 - room))
        return self.tokenizer(list(texts), truncation=True, max_length=longest, return_offsets_mapping=True)

    def scores(self, ids: Sequence[Sequence[int]], where: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each row's index and its scores over the vocabulary, the shortest rows first.

        Sentences of equal length form a batch, so there is no padding, and the scores of a sentence are independent of
        the others (bit for bit in bf16, as far as tested). The product with the vocabulary is half of the work, so it
        is computed only at the given positions.

        Args:
            ids: Token ids of each row, with special tokens.
            where: Positions to score in each row, int64 (positions,).

        Yields:
            Index of the row, and its scores, float32 (positions, vocabulary); -inf for special tokens.
        """
        import torch

        for batch in self._batches([len(row) for row in ids]):
            tokens = torch.tensor([ids[i] for i in batch], device=self.device)
            offsets = np.arange(len(batch)) * tokens.shape[1]
            wanted = np.concatenate([where[i] + offset for i, offset in zip(batch, offsets, strict=True)])
            self._wanted = torch.from_numpy(wanted).to(self.device)
            with torch.inference_mode():
                logits = self.model(input_ids=tokens).logits
                if logits.dim() == 3:  # the output layer is not linear, so the hook did not run
                    logits = logits.flatten(0, 1)[self._wanted]
                scores = logits.float().cpu().numpy()
            scores[:, self.special] = -np.inf
            ends = np.cumsum([len(where[i]) for i in batch])[:-1]
            yield from zip(batch, np.split(scores, ends), strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield batches of indices of rows of equal length, whose scores over the vocabulary fit in memory."""
        order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
        for length, group in itertools.groupby(order, key=lambda i: lengths[i]):
            rows, size = list(group), max(1, min(_SENTENCES, _TOKENS // max(length, 1)))
            yield from (rows[start : start + size] for start in range(0, len(rows), size))


@dataclass(frozen=True, kw_only=True)
class _LikelyWords(ConstructorSpec):
    """Options of both kinds.

    Attributes:
        model: A masked language model: local folder or hub id.
        share: Minimum and maximum share of the words that are changed (OssCSE: 0.05 and 0.1); at least one word is.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    model: str
    share: tuple[float, float] = (0.05, 0.1)

    def __post_init__(self) -> None:
        if len(self.share) != 2 or not 0 < self.share[0] <= self.share[1] <= 1:
            raise ValueError(f"share must be a range within (0, 1], not {list(self.share)} (OssCSE: [0.05, 0.1])")

    def open(self, *, seed: int = 0, prepared: Any = None) -> Constructor:
        """Load the masked language model."""
        predictor = WordPredictor(self.model)
        return Constructor(build=partial(self._edited, predictor=predictor, seed=seed), digest=predictor.digest)

    def _edited(self, rows: Sequence[SourceRow], predictor: WordPredictor, seed: int) -> list[BuiltView]:
        """Put masks at random places of each row's text, and fill each with the most likely word."""
        insert = isinstance(self, Insertion)
        encoded = predictor.encode([row.text for row in rows], room=self.share[1])
        places = [
            self._places(row, encoded, i, predictor.max_length, row_random(seed, self.kind, row))
            for i, row in enumerate(rows)
        ]
        results: list[tuple[str | None, str]] = [(None, "too short")] * len(rows)
        live = [i for i, chosen in enumerate(places) if chosen]
        masked, where = [], []
        for i in live:
            ids, mask = np.array(encoded["input_ids"][i]), predictor.tokenizer.mask_token_id
            if insert:
                ids = np.insert(ids, places[i], mask)
            else:
                ids[places[i]] = mask
            masked.append(ids.tolist())
            where.append(np.array(places[i]) + insert * np.arange(len(places[i])))
        for k, scores in predictor.scores(masked, where):
            i = live[k]
            ids, offsets = encoded["input_ids"][i], encoded["offset_mapping"][i]
            edits: list[Edit] = []
            previous = None
            for place, logits in zip(places[i], scores, strict=True):
                previous = word = _most_likely(predictor.tokenizer, logits, ids[place], previous)
                start, end = offsets[place]
                edits.append((start, start, word + " ") if insert else (start, end, word))
            results[i] = (apply_edits(rows[i].text, edits), f"{len(edits)} {'inserted' if insert else 'replaced'}")
        return with_error_rate(rows, results)

    def _places(self, row: SourceRow, encoded: Any, index: int, longest: int, rng: random.Random) -> list[int]:
        """Return the places of random words that are a single piece with a letter, so that a whole word is replaced."""
        words, offsets = encoded.word_ids(index), encoded["offset_mapping"][index]
        single = [
            k
            for k, word in enumerate(words)
            if word is not None
            and words.count(word) == 1
            and any(c.isalpha() for c in row.text[slice(*offsets[k])])
            and (offsets[k][0] == 0 or row.text[offsets[k][0] - 1].isspace())
        ]
        count = len(row.text.split())
        wanted = max(1, math.floor(count * rng.uniform(*self.share)))
        room = longest - len(words)
        return sorted(rng.sample(single, max(0, min(wanted, len(single), room))))


class Insertion(_LikelyWords):
    """Insert likely words between the words of the sentence.

    Source: Shi et al., OssCSE (EMNLP 2023), §3.2.

    Example:
        [build.longer]
        kind = "insertion"
        model = "mini-mlm"

        >>> Insertion(model="mini-mlm").preview("The bakery sells bread.")
        ['then The bakery sells bread.']
    """

    kind = "insertion"


class WordSubstitution(_LikelyWords):
    """Replace words by other likely words.

    Source: Shi et al., OssCSE (EMNLP 2023), §3.2.

    Example:
        [build.replaced]
        kind = "word_substitution"
        model = "mini-mlm"

        >>> WordSubstitution(model="mini-mlm").preview("The bakery sells bread.")
        ['a bakery sells bread.']
    """

    kind = "word_substitution"


def _most_likely(tokenizer: Any, scores: np.ndarray, original: int, previous: str | None) -> str:
    """Return the most likely alphabetic word other than the original and the word before it."""
    best = np.argpartition(-scores, min(50, len(scores)) - 1)[:50].tolist()
    for index in sorted(best, key=lambda i: (-scores[i], i)):
        piece = tokenizer.convert_ids_to_tokens(index)
        word = tokenizer.convert_tokens_to_string([piece]).strip()
        if index != original and not piece.startswith("##") and word.isalpha() and word != previous:
            return word
    return tokenizer.convert_tokens_to_string([tokenizer.convert_ids_to_tokens(original)]).strip()
