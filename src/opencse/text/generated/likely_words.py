"""Words that a masked language model finds likely: inserted, substituted, or by word class.

Sources: OssCSE §3.2 (insertion, substitution), SAN §3.1 (by word class).
"""

from __future__ import annotations

import itertools
import math
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from opencse.foundation.cache import Store, is_whole, new_store, store_folder
from opencse.foundation.chunks import chunks
from opencse.text.surface import lexical_overlap
from opencse.text.syntax import Edit, SpacyParser, apply_edits, load_parser
from opencse.text.views.registry import (
    OpenedView,
    SourceRow,
    View,
    ViewText,
    bundle_digest,
    row_random,
    row_seed,
    with_error_rate,
)

# Sentences in one forward pass, at most.
_SENTENCES = 64
# Tokens in one forward pass: enough for full speed; their scores over the vocabulary take 60 MB.
_TOKENS = 512


class _WordPredictor:
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
            output.register_forward_pre_hook(
                lambda _, args: (args[0].flatten(0, 1)[self._wanted], *args[1:])
            )
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
        return self.tokenizer(
            list(texts), truncation=True, max_length=longest, return_offsets_mapping=True
        )

    def scores(
        self,
        ids: Sequence[Sequence[int]],
        where: Sequence[np.ndarray],
        *,
        special: bool = False,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each row's index and its scores over the vocabulary, the shortest rows first.

        Sentences of equal length form a batch, so there is no padding, and the scores of a sentence
        are independent of the others (bit for bit in bf16, as far as tested). The product with the
        vocabulary is half of the work, so it is computed only at the given positions.

        Args:
            ids: Token ids of each row, with special tokens.
            where: Positions to score in each row, int64 (positions,).
            special: Let special tokens be predicted too.

        Yields:
            Index of the row, and its scores, float32 (positions, vocabulary); -inf for special
            tokens that may not be predicted.
        """
        import torch

        order = sorted(range(len(ids)), key=lambda i: (len(ids[i]), i))
        batches = []
        for length, group in itertools.groupby(order, key=lambda i: len(ids[i])):
            # The scores of a batch over the vocabulary have to fit in memory.
            most = max(1, min(_SENTENCES, _TOKENS // max(length, 1)))
            batches += list(chunks(group, most))
        for batch in batches:
            tokens = torch.tensor([ids[i] for i in batch], device=self.device)
            offsets = np.arange(len(batch)) * tokens.shape[1]
            positions = [where[i] + offset for i, offset in zip(batch, offsets, strict=True)]
            wanted = np.concatenate(positions)
            self._wanted = torch.from_numpy(wanted).to(self.device)
            with torch.inference_mode():
                logits = self.model(input_ids=tokens).logits
                if logits.dim() == 3:
                    # The output layer is not linear, so the hook did not run.
                    logits = logits.flatten(0, 1)[self._wanted]
                scores = logits.float().cpu().numpy()
            if not special:
                scores[:, self.special] = -np.inf
            ends = np.cumsum([len(where[i]) for i in batch])[:-1]
            yield from zip(batch, np.split(scores, ends), strict=True)


@dataclass(frozen=True, kw_only=True)
class _LikelyWords(View):
    """Options of both kinds.

    Attributes:
        model: A masked language model: local folder or hub id.
        share: Minimum and maximum share of the words that are changed (OssCSE: 0.05 and 0.1); at
            least one word is.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    model: str
    share: tuple[float, float] = (0.05, 0.1)

    def __post_init__(self) -> None:
        if len(self.share) != 2 or not 0 < self.share[0] <= self.share[1] <= 1:
            raise ValueError(
                f"share must be a range within (0, 1], not {list(self.share)} (OssCSE: [0.05, 0.1])"
            )

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load the masked language model."""
        predictor = _WordPredictor(self.model)
        return OpenedView(
            build=partial(self._edited, predictor=predictor, seed=seed), digest=predictor.digest
        )

    def _edited(
        self, rows: Sequence[SourceRow], predictor: _WordPredictor, seed: int
    ) -> list[ViewText]:
        """Put masks at random places of each row's text; fill each with its likeliest word."""
        insert = isinstance(self, Insertion)
        tokenizer = predictor.tokenizer
        mask = tokenizer.mask_token_id
        encoded = predictor.encode([row.text for row in rows], room=self.share[1])
        places = []
        for i, row in enumerate(rows):
            rng = row_random(seed, self.kind, row)
            places.append(self._places(row, encoded, i, predictor.max_length, rng))
        live = [i for i, chosen in enumerate(places) if chosen]

        masked = []
        where = []
        for i in live:
            ids = np.array(encoded["input_ids"][i])
            positions = np.array(places[i])
            if insert:
                ids = np.insert(ids, places[i], mask)
                # Each mask moves the later ones to the right.
                positions = positions + np.arange(len(places[i]))
            else:
                ids[places[i]] = mask
            masked.append(ids.tolist())
            where.append(positions)

        results: list[tuple[str | None, str]] = [(None, "too short")] * len(rows)
        for k, scores in predictor.scores(masked, where):
            i = live[k]
            original = encoded["input_ids"][i]
            offsets = encoded["offset_mapping"][i]
            edits: list[Edit] = []
            previous = None
            for place, logits in zip(places[i], scores, strict=True):
                word = _most_likely(tokenizer, logits, original[place], previous)
                previous = word
                start, end = offsets[place]
                if insert:
                    edits.append((start, start, word + " "))
                else:
                    edits.append((start, end, word))
            rule = f"{len(edits)} {'inserted' if insert else 'replaced'}"
            results[i] = (apply_edits(rows[i].text, edits), rule)
        return with_error_rate(rows, results)

    def _places(
        self, row: SourceRow, encoded: Any, index: int, longest: int, rng: random.Random
    ) -> list[int]:
        """Return the positions of random words that are a single piece with a letter.

        Only those are replaced or preceded as a complete word.
        """
        words = encoded.word_ids(index)
        offsets = encoded["offset_mapping"][index]
        single = []
        for k, word in enumerate(words):
            if word is None or words.count(word) > 1:
                continue
            start, end = offsets[k]
            has_letter = any(c.isalpha() for c in row.text[start:end])
            after_space = start == 0 or row.text[start - 1].isspace()
            if has_letter and after_space:
                single.append(k)
        wanted = max(1, math.floor(len(row.text.split()) * rng.uniform(*self.share)))
        count = max(0, min(wanted, len(single), longest - len(words)))
        return sorted(rng.sample(single, count))


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
    uses_gpu = True


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
    uses_gpu = True


def _most_likely(tokenizer: Any, scores: np.ndarray, original: int, previous: str | None) -> str:
    """Return the most likely alphabetic word other than the original and the word before it."""
    # Fifty hold a word in practice, and sorting the vocabulary would take longer.
    best = np.argpartition(-scores, min(50, len(scores)) - 1)[:50].tolist()
    for index in sorted(best, key=lambda i: (-scores[i], i)):
        piece = tokenizer.convert_ids_to_tokens(index)
        if index == original or piece.startswith("##"):
            continue
        word = tokenizer.convert_tokens_to_string([piece]).strip()
        if word.isalpha() and word != previous:
            return word
    piece = tokenizer.convert_ids_to_tokens(original)
    return tokenizer.convert_tokens_to_string([piece]).strip()


SAN_SCORES: dict[str, float] = {
    "NOUN": 9, "VERB": 9, "ADJ": 8, "PROPN": 8, "ADV": 7, "PRON": 7, "CCONJ": 6, "DET": 6, "ADP": 5, "CONJ": 5,
    "SCONJ": 5, "AUX": 4, "NUM": 4, "PART": 3, "INTJ": 2, "PUNCT": 1, "SYM": 1, "X": 1,
}  # fmt: skip
"""Importance of each part of speech for the meaning (SAN Table 2)."""
# Sentences are first truncated to this length, as published.
_MAX_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Substitution(View):
    """Mask words with a probability that depends on their part of speech, predict them, and repeat.

    The masking is as published; `drop_unchanged` is our addition. The authors use `short_filter`
    and a `fallback` for RankCSE and RLRD only (Table 6). Source: SAN, §3.1.

    Attributes:
        model: A masked language model: local folder or hub id.
        iterations: Number of mask-and-predict cycles.
        divisor: A token is masked with the probability of its tag's score divided by this.
        fallback: Column whose text replaces a rejected output ("negation"); "" for null.
        short_filter: Reject outputs of at most 50 characters in which punctuation makes up 30 % or
            more of punctuation and spaces (SAN's published filter).
        drop_unchanged: Reject outputs with the same words as the source.
        predict_special: As in the authors' code, let special tokens be predicted: `[UNK]` stays in the
            text and the others vanish from it. Each cycle then ends its text in a mark again.
        syntax: The pipeline that tags.
        precision: "fp32", "bf16", or "auto": whichever multiplies faster on this machine. In bf16,
            the order of words whose scores differ by less than 1 % may change.

    Example:
        [build.negation]
        kind = "negation"

        [build.negative]
        kind = "substitution"
        model = "mini-mlm"
        fallback = "negation"

        >>> spec = Substitution(model="mini-mlm", precision="fp32", fallback="")
        >>> spec.preview("The bakery sells bread in our street.")
        ['the wey is a to in our life.']
    """

    kind = "substitution"
    uses_gpu = True
    scores: ClassVar[Mapping[str, str]] = {"overlap": "float", "mer": "float"}

    model: str
    iterations: int = 4
    divisor: float = 20.0
    fallback: str = "negation"
    short_filter: bool = True
    drop_unchanged: bool = True
    predict_special: bool = False
    syntax: str = "syntax"
    precision: Literal["auto", "fp32", "bf16"] = "auto"

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.divisor < max(SAN_SCORES.values()):
            raise ValueError(
                "iterations must be at least 1 and divisor no smaller than any score (SAN: 4 and 20)"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The fallback column."""
        return (self.fallback,) if self.fallback else ()

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load the masked language model and the tags."""
        opened = Substituter(self, seed)
        return OpenedView(build=opened, digest=opened.digest)


class Substituter:
    """An opened `Substitution`."""

    def __init__(self, spec: Substitution, seed: int) -> None:
        self.spec = spec
        self._seed = seed
        self._predictor = _WordPredictor(spec.model, precision=spec.precision)
        parser = load_parser(spec.syntax)
        tags = static_lexicon(self._predictor.tokenizer, parser)
        scores = np.array([SAN_SCORES.get(tag, SAN_SCORES["X"]) if tag else 0.0 for tag in tags])
        self._of_id = scores / spec.divisor
        self.digest = bundle_digest(self._predictor.digest, parser.digest)

    def __call__(self, rows: Sequence[SourceRow]) -> list[ViewText]:
        """Substitute words in each row's text."""
        spec = self.spec
        sources = [_with_final_mark(row.text.strip()[:_MAX_CHARACTERS]) for row in rows]
        texts = list(sources)
        rngs = []
        for row in rows:
            bits = np.random.Philox(row_seed(self._seed, spec.kind, row))
            rngs.append(np.random.Generator(bits))
        live = [i for i, text in enumerate(texts) if text.strip()]
        for _ in range(spec.iterations):
            changed = self.cycle([texts[i] for i in live], [rngs[i] for i in live])
            for i, text in zip(live, changed, strict=True):
                texts[i] = text

        unchanged = lexical_overlap(sources, texts) == 1.0
        results = []
        for row, text, same in zip(rows, texts, unchanged.tolist(), strict=True):
            results.append(self._accepted(row, text, same))
        views = with_error_rate(rows, results)

        view_texts = [view.text or "" for view in views]
        overlaps = lexical_overlap([row.text for row in rows], view_texts).tolist()
        scored = []
        for view, overlap in zip(views, overlaps, strict=True):
            share = overlap if view.text else None
            scored.append(replace(view, scores={**view.scores, "overlap": share}))
        return scored

    def _accepted(self, row: SourceRow, text: str, unchanged: bool) -> tuple[str | None, str]:
        """Return an output and its rule; the fallback column instead if the output is rejected."""
        spec = self.spec
        if spec.short_filter and not passes_filter(text):
            rule = "rejected"
        elif spec.drop_unchanged and unchanged:
            rule = "unchanged"
        else:
            return text, "substituted"
        fallback = row.views.get(spec.fallback)
        if fallback is None:
            return None, rule
        return fallback, f"{rule}, {spec.fallback}"

    def cycle(self, texts: Sequence[str], rngs: Sequence[np.random.Generator]) -> list[str]:
        """Mask and predict n texts once, each by the generator of its row.

        All positions are predicted, masked or not, as published.
        """
        tokenizer = self._predictor.tokenizer
        special = self._predictor.special
        as_coded = self.spec.predict_special
        if as_coded:
            texts = [_with_final_mark(text) for text in texts]
        encoded = self._predictor.encode(texts)
        ids = [np.asarray(row) for row in encoded["input_ids"]]
        probabilities = self.mask_probabilities(encoded)
        inputs = []
        for row, probability, rng in zip(ids, probabilities, rngs, strict=True):
            masked = rng.random(len(row)) < probability
            inputs.append(np.where(masked, tokenizer.mask_token_id, row).tolist())
        where = [np.flatnonzero(~np.isin(row, special)) for row in ids]
        for i, scores in self._predictor.scores(inputs, where, special=as_coded):
            ids[i][where[i]] = scores.argmax(-1)
        if as_coded:
            lost = special[special != tokenizer.unk_token_id]
            ids = [row[~np.isin(row, lost)] for row in ids]
        options = {"skip_special_tokens": not as_coded, "clean_up_tokenization_spaces": True}
        return [tokenizer.decode(row.tolist(), **options).strip() for row in ids]

    def mask_probabilities(self, encoded: Any) -> list[np.ndarray]:
        """Return the probability with which each token is masked; 0 for special tokens.

        The tags are those of the vocabulary's entries, and X for pieces that continue a word, as
        published.
        """
        continued = SAN_SCORES["X"] / self.spec.divisor
        out = []
        for i, ids in enumerate(encoded["input_ids"]):
            words = encoded.word_ids(i)
            inner = []
            for k, word in enumerate(words):
                inner.append(k > 0 and word is not None and word == words[k - 1])
            p = np.where(inner, continued, self._of_id[np.asarray(ids)])
            out.append(np.where(np.isin(ids, self._predictor.special), 0.0, p))
        return out


def _with_final_mark(text: str) -> str:
    """Add a full stop to a text that ends without punctuation."""
    if text and text[-1] not in string.punctuation:
        return f"{text}."
    return text


def passes_filter(text: str) -> bool:
    """Return whether an output passes SAN's published filter of mostly punctuation.

    Only outputs of at most 50 characters are filtered.
    """
    if not text.strip():
        return False
    marks = sum(c in string.punctuation for c in text)
    spaces = text.count(" ")
    if len(text) > 50 or marks + spaces == 0:
        return True
    return marks / (marks + spaces) < 0.3


def static_lexicon(tokenizer: Any, parser: SpacyParser) -> list[str]:
    """Return a coarse tag for each id of a tokenizer; each entry is tagged as its own sentence.

    Pieces that continue a word get X, as published, and so do entries that spell no word; special
    tokens get "". The result is cached by vocabulary and parser.

    Args:
        tokenizer: A transformers tokenizer.
        parser: Tags the entries.
    """
    size = 1 + max(tokenizer.get_vocab().values())
    entries = [entry or "" for entry in tokenizer.convert_ids_to_tokens(range(size))]
    special = set(tokenizer.all_special_ids)
    folder = store_folder("tokens", ["tags", parser.digest, sorted(special), entries])
    if not is_whole(folder):
        words = []
        for index, entry in enumerate(entries):
            words.append("" if index in special else _word(tokenizer, entry))
        spelled = [word for word in words if word]
        tag_of = {}
        for word, tokens in zip(spelled, parser.parse(spelled), strict=True):
            if tokens:
                tag_of[word] = tokens[0].pos
        tags = []
        for index, word in enumerate(words):
            tags.append("" if index in special else tag_of.get(word) or "X")
        with new_store(folder, {"tags": np.uint8}) as writer:
            writer.add([tag.encode() for tag in tags])
    return Store(folder).texts("tags", np.arange(size))


def _word(tokenizer: Any, entry: str) -> str:
    """Return the word that a vocabulary entry spells; "" for a piece that continues a word."""
    if entry.startswith("##"):
        return ""
    word = entry.lstrip("Ġ▁").replace("</w>", "").strip()
    if word.startswith("[unused"):
        return ""
    # Byte-level entries spell characters beyond ASCII, and inner spaces, in an encoding of bytes.
    if word and ("Ġ" in entry or not word.isascii()):
        return tokenizer.convert_tokens_to_string([entry]).strip()
    return word
