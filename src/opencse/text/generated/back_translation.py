"""Paraphrases by translation to a pivot language and back, chosen by match error rate (OssCSE §4; DebCSE §4.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from opencse.encoder.names import on_this_machine, resolve
from opencse.foundation.errors import OpencseError
from opencse.text.corpus import chunks
from opencse.text.generated.candidate_table import Candidate, CandidateSource, Pick, check_error_rate_window
from opencse.text.views.constructor import ConstructorSpec, SourceRow, bundle_digest, row_random

FREQUENT = tuple(
    """the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which
    one you were her all she there would their we him been has when who will more no if out so said what up its
    about into than them can only other new some could time these two may then do first any my now such like our
    over man me even most made after also did many before must through back years where much your way well down
    should because each just those""".split()
)
"""A hundred frequent English words, for the noise that DebCSE inserts before translation."""

_BATCH = 32  # sentences in one forward pass
_MAX_NEW_TOKENS = 256
_MAX_CHARACTERS = 1000  # longer sentences give null, because translation models drop text beyond their maximum length


@dataclass(frozen=True, kw_only=True)
class BackTranslation(ConstructorSpec):
    """Translate to each pivot language and back, and choose among the results; sentences that are too long give null.

    Attributes:
        models: For each pivot, the model to the pivot language and the model back: Marian or FSMT, folder or hub id.
        window: Minimum and maximum match error rate (OssCSE: 0.15 and 0.6).
        pick: The choice among the candidates in the window: that with the "highest" rate, or a "random" one.
        beams: Width of the beam search; 1 is greedy search.
        noise: Change of the source before translation: "none", "insert" (frequent words), "mask" (words), or
            "insert_or_mask" (DebCSE: one of the two, drawn for each variant of a sentence).
        noise_words: Minimum and maximum number of words that are inserted or masked.
        variants: Candidates per pivot; more than one is useful with noise.

    Example:
        [build.paraphrase]
        kind = "back_translation"
        models = [["Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"]]

        >>> BackTranslation(models=(("en-de", "de-en"),)).preview("It rains.")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "back_translation"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float", "candidates": "int"}

    models: tuple[tuple[str, str], ...]
    window: tuple[float, float] = (0.15, 0.6)
    pick: Pick = "highest"
    beams: int = 5
    noise: Literal["none", "insert", "mask", "insert_or_mask"] = "none"
    noise_words: tuple[int, int] = (1, 2)
    variants: int = 1

    def __post_init__(self) -> None:
        check_error_rate_window(self.window)
        if not self.models or any(len(pair) != 2 for pair in self.models):
            raise ValueError(
                'models must list pairs of models, to the pivot language and back, such as [["en-de", "de-en"]]'
            )
        if self.beams < 1 or self.variants < 1 or not 0 <= self.noise_words[0] <= self.noise_words[1]:
            raise ValueError("beams and variants must be at least 1, and noise_words a range")

    def check(self) -> None:
        """Check that the translation models are on this machine: none is fetched unasked.

        Raises:
            OpencseError: One of them is not.
        """
        for name in (name for pair in self.models for name in pair):
            if not on_this_machine(resolve(name)):
                raise OpencseError(
                    f"back-translation needs the model {name}, which is not on this machine",
                    f"Bring paraphrases of your own (--paraphrases TABLE), or fetch it with `hf download {name}`.",
                )

    def open(self, *, seed: int = 0, prepared: Any = None) -> BackTranslator:
        """Load the translation models."""
        self.check()
        return BackTranslator(self, seed=seed)


class BackTranslator(CandidateSource):
    """An opened `BackTranslation`."""

    def __init__(self, spec: BackTranslation, *, seed: int = 0) -> None:
        from opencse.foundation.tensors import tensors_hash

        self._pairs = [tuple(Translator(name, spec.beams) for name in pair) for pair in spec.models]
        weights = (tensors_hash(one.model.state_dict()) for pair in self._pairs for one in pair)
        super().__init__(spec, seed, bundle_digest(*weights))

    def candidates(self, rows: Sequence[SourceRow]) -> list[list[Candidate]]:
        """Translate each row's text to every pivot and back, in every variant."""
        spec = self._spec
        pools: list[list[Candidate]] = [[] for _ in rows]
        live = [i for i, row in enumerate(rows) if row.text.strip() and len(row.text) <= _MAX_CHARACTERS]
        for pivot, (forward, back) in enumerate(self._pairs):
            for variant in range(spec.variants):
                sources = [self._noisy(rows[i], f"{pivot}.{variant}", forward) for i in live]
                for i, text in zip(live, back(forward(sources)), strict=True):
                    pools[i].append(Candidate(text=text, label=spec.models[pivot][0]))
        return pools

    def _noisy(self, row: SourceRow, salt: str, translator: Translator) -> str:
        """Insert frequent words, or mask words, at random places (DebCSE §4.2)."""
        spec = self._spec
        if spec.noise == "none":
            return row.text
        rng = row_random(self._seed, f"noise.{salt}", row)
        count = rng.randint(*spec.noise_words)
        kind = rng.choice(("insert", "mask")) if spec.noise == "insert_or_mask" else spec.noise
        if kind == "insert":
            return insert_words(row.text, [rng.choice(FREQUENT) for _ in range(count)], rng)
        return mask_words(row.text, count, translator.unknown, rng)


def insert_words(text: str, words: Sequence[str], rng: random.Random) -> str:
    """Insert words between the words of a text, each at a random place."""
    for word in words:
        starts = [match.start() for match in re.finditer(r"\S+", text)]
        place = rng.choice([*starts, len(text)])
        text = f"{text[:place]}{word} {text[place:]}" if place < len(text) else f"{text} {word}"
    return text


def mask_words(text: str, count: int, mask: str, rng: random.Random) -> str:
    """Replace words at random places by a mask."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    for start, end in sorted(rng.sample(spans, min(count, len(spans))), reverse=True):
        text = text[:start] + mask + text[end:]
    return text


def _check_weights(folder: Path) -> None:
    """Refuse weights in a pickle, as in FSMT's repositories, because reading a pickle can run code.

    Raises:
        OpencseError: There is `pytorch_model.bin`, but no safetensors file.
    """
    if (folder / "pytorch_model.bin").is_file() and not any(folder.glob("*.safetensors")):
        raise OpencseError(
            f"{folder} has its weights only as pytorch_model.bin, a pickle, which is refused",
            "Reading it can run code. If you trust it, convert it once: transformers' AutoModelForSeq2SeqLM reads it "
            "(from_pretrained) and writes model.safetensors (save_pretrained).",
        )


class Translator:
    """A translation model in evaluation mode.

    Args:
        name: Local folder or hub id of a Marian or FSMT model.
        beams: Width of the beam search.
    """

    def __init__(self, name: str, beams: int) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        from opencse.encoder.device import choose_device
        from opencse.encoder.model_folder import quiet

        name = resolve(name)
        local = Path(name).is_dir()  # never looked up on the hub
        if local:
            _check_weights(Path(name))
        try:
            with quiet():
                self.tokenizer: Any = AutoTokenizer.from_pretrained(
                    name, local_files_only=local, trust_remote_code=False
                )
                self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                    name, use_safetensors=True, local_files_only=local, trust_remote_code=False
                )
        except (OSError, ValueError, ImportError) as error:
            raise OpencseError(
                f"no translation model {name!r}: {str(error).strip().splitlines()[0]}",
                'Pass a folder or hub id with model.safetensors; the tokenizers need pip install "opencse[mt]".',
            ) from error
        self.model.generation_config.max_length = None  # else it is announced that max_new_tokens has precedence
        self._beams = beams
        self.model.to(choose_device()).eval()
        self.unknown: str = self.tokenizer.unk_token or "[MASK]"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Translate n texts in batches of similar length."""
        import torch

        out = [""] * len(texts)
        lengths = [len(ids) for ids in self.tokenizer(list(texts))["input_ids"]] if texts else []
        order = sorted(range(len(texts)), key=lambda i: (lengths[i], i))
        for batch in chunks(order, _BATCH):
            encoded = self.tokenizer([texts[i] for i in batch], return_tensors="pt", padding=True, truncation=True)
            with torch.inference_mode():
                generated = self.model.generate(
                    input_ids=encoded["input_ids"].to(self.model.device),
                    attention_mask=encoded["attention_mask"].to(self.model.device),
                    max_new_tokens=_MAX_NEW_TOKENS,
                    num_beams=self._beams,
                    do_sample=False,
                )
            for i, text in zip(batch, self.tokenizer.batch_decode(generated, skip_special_tokens=True), strict=True):
                out[i] = text.strip()
        return out
