"""Paraphrases chosen by match error rate among the candidates of a table or of back-translation.

Sources: OssCSE §4, DebCSE §4.2.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Literal

from opencse.encoder.names import on_this_machine, resolve
from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS, file_extension, regular_file
from opencse.foundation.tables import TABLES, column_rows
from opencse.text.surface import match_error_rate
from opencse.text.views.registry import (
    OpenedView,
    SourceRow,
    View,
    ViewText,
    bundle_digest,
    row_random,
)

Candidate = tuple[str, str]
"""A possible paraphrase, and its origin, such as a pivot language or a system."""


@dataclass(frozen=True, kw_only=True)
class ChosenCandidate(View):
    """Base class of the kinds that choose one of several candidates for each row.

    The choice is among those whose match error rate lies in the window (both ends included): its
    lower end excludes near-copies, the upper end corrupted translations. Copies of the text, and
    duplicate candidates, are dropped.

    Attributes:
        window: Minimum and maximum match error rate (OssCSE: 0.15 and 0.6).
        pick: The choice among the candidates in the window: that with the "highest" rate, or a
            "random" one.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float", "candidates": "int"}

    window: tuple[float, float] = (0.15, 0.6)
    pick: Literal["highest", "random"] = "highest"

    def __post_init__(self) -> None:
        if len(self.window) != 2 or not 0 <= self.window[0] <= self.window[1] <= 1:
            raise ValueError(
                f"window must be a range within [0, 1], not {list(self.window)} (OssCSE: [0.15, 0.6])"
            )

    def candidates(self, seed: int) -> OpenedView:
        """Load the source of the candidates; it maps rows to lists of them."""
        raise NotImplementedError

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load the source of the candidates."""
        source = self.candidates(seed)
        return OpenedView(
            build=partial(self._choose, source=source, seed=seed), digest=source.digest
        )

    def _choose(self, rows: Sequence[SourceRow], source: OpenedView, seed: int) -> list[ViewText]:
        """Choose one of each row's candidates in the window."""
        pools = source(rows)
        low, high = self.window
        owners = []
        candidates = []
        for i, pool in enumerate(pools):
            for candidate in distinct_candidates(rows[i].text, pool):
                owners.append(i)
                candidates.append(candidate)
        rates = match_error_rate([rows[i].text for i in owners], [text for text, _ in candidates])
        fitting: list[list[tuple[float, Candidate]]] = [[] for _ in rows]
        for i, candidate, rate in zip(owners, candidates, rates.tolist(), strict=True):
            if low <= rate <= high:
                fitting[i].append((rate, candidate))

        views = []
        for row, pool, left in zip(rows, pools, fitting, strict=True):
            mer: float | None = None
            text: str | None = None
            rule = "none in window" if pool else "no candidate"
            if left and self.pick == "random":
                mer, (text, rule) = row_random(seed, self.kind, row).choice(left)
            elif left:
                mer, (text, rule) = max(left, key=itemgetter(0))
            scores = {"mer": mer, "candidates": len(pool)}
            views.append(ViewText(text=text, rule=rule, scores=scores))
        return views


def distinct_candidates(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without copies of the text and duplicates, whatever their case."""
    seen = {" ".join(text.lower().split())}
    out = []
    for candidate in candidates:
        key = " ".join(candidate[0].lower().split())
        if key and key not in seen:
            seen.add(key)
            out.append(candidate)
    return out


@dataclass(frozen=True, kw_only=True)
class CandidateTable(ChosenCandidate):
    r"""Choose paraphrases from a table that lists several for each text.

    Attributes:
        path: A Parquet, CSV, TSV or JSONL file.
        text_column: Column with the sentence, by which rows of the corpus are looked up.
        candidate_column: Column with a candidate, or with a list of candidates.
        label_columns: Columns with the origin of a candidate; it is recorded as the rule.

    Example:
        [build.paraphrase]
        kind = "candidate_table"
        path = "paraphrases.csv"
        candidate_column = "paraphrase"

        >>> from pathlib import Path
        >>> _ = Path("rain.csv").write_text("text,candidate\nIt rains.,There is rain.\n")
        >>> CandidateTable(path="rain.csv", window=(0, 1)).preview("It rains.", "We swim.")
        ['There is rain.', None]
    """

    kind = "candidate_table"

    path: str
    text_column: str = "text"
    candidate_column: str = "candidate"
    label_columns: tuple[str, ...] = ()

    def check(self) -> None:
        """Check that the recipe names a table.

        Raises:
            OpencseError: It names none.
        """
        if not self.path:
            raise OpencseError(
                "paraphrases are chosen from a table", "Name it: --set build.paraphrase.path=TABLE."
            )

    def candidates(self, seed: int) -> OpenedView:
        """Read the table."""
        self.check()
        path = regular_file(self.path)
        if file_extension(path) not in (".parquet", *TABLES):
            raise OpencseError(
                f"{path} is not a table of candidates",
                "It must end in .parquet, .csv, .tsv or .jsonl.",
            )
        table: dict[str, list[Candidate]] = {}
        columns = (self.text_column, self.candidate_column, *self.label_columns)
        for _, _, cells in column_rows(path, columns):
            text, value, *labels = cells
            if text is None:
                continue
            label = "/".join(map(str, labels)) or "chosen"
            known = table.setdefault(str(text).strip(), [])
            for candidate in value if isinstance(value, list) else [value]:
                if candidate is not None:
                    known.append((str(candidate), label))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()

        def look_up(rows: Sequence[SourceRow]) -> list[list[Candidate]]:
            return [table.get(row.text.strip(), []) for row in rows]

        return OpenedView(build=look_up, digest=digest)


FREQUENT = (ASSETS / "lexicon" / "frequent.txt").read_text(encoding="utf-8").split()
"""A hundred frequent English words, for the noise that DebCSE inserts before translation."""

# Sentences in one forward pass.
_BATCH = 32
_MAX_NEW_TOKENS = 256
# Longer sentences give null, because translation models drop text beyond their maximum length.
_MAX_CHARACTERS = 1000


@dataclass(frozen=True, kw_only=True)
class BackTranslation(ChosenCandidate):
    """Translate to each pivot language and back, and choose among the results.

    Sentences of more than 1,000 characters give null.

    Attributes:
        models: For each pivot, the model to the pivot language and the model back: Marian or FSMT,
            folder or hub id.
        beams: Width of the beam search; 1 is greedy search.
        noise: Change of the source before translation: "none", or "insert_or_mask" (DebCSE:
            frequent words are inserted or words masked, drawn for each variant of a sentence).
        noise_words: Minimum and maximum number of words that are inserted or masked.
        variants: Candidates per pivot; more than one is useful with noise.

    Example:
        [build.paraphrase]
        kind = "back_translation"
        models = [["Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"]]

        >>> BackTranslation(models=(("en-de", "de-en"),)).preview("It rains.")  # doctest: +SKIP
    """

    kind = "back_translation"
    uses_gpu = True

    models: tuple[tuple[str, str], ...]
    beams: int = 5
    noise: Literal["none", "insert_or_mask"] = "none"
    noise_words: tuple[int, int] = (1, 2)
    variants: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or any(len(pair) != 2 for pair in self.models):
            raise ValueError(
                "models must list pairs of models, to the pivot language and back, such as "
                '[["en-de", "de-en"]]'
            )
        low, high = self.noise_words
        if self.beams < 1 or self.variants < 1 or not 0 <= low <= high:
            raise ValueError("beams and variants must be at least 1, and noise_words a range")

    def check(self) -> None:
        """Check that the translation models are on this machine: none is downloaded unasked.

        Raises:
            OpencseError: One of them is missing.
        """
        for pair in self.models:
            for name in pair:
                # Not `resolve`, which would ask the hub.
                if not on_this_machine(name):
                    raise OpencseError(
                        f"back-translation needs the model {name}, which is not on this machine",
                        "Bring your own paraphrases (`opencse run` takes --paraphrases TABLE), or "
                        f"fetch it: `hf download {name}`.",
                    )

    def candidates(self, seed: int) -> OpenedView:
        """Load the translation models."""
        from opencse.foundation.tensors import tensors_hash

        self.check()
        pairs = []
        hashes = []
        for forward, back in self.models:
            pair = (_Translator(forward, self.beams), _Translator(back, self.beams))
            pairs.append(pair)
            for translator in pair:
                hashes.append(tensors_hash(translator.model.state_dict()))
        digest = bundle_digest(*hashes)
        return OpenedView(build=partial(self._translated, pairs=pairs, seed=seed), digest=digest)

    def _translated(
        self, rows: Sequence[SourceRow], pairs: Sequence[tuple[_Translator, _Translator]], seed: int
    ) -> list[list[Candidate]]:
        """Translate each row's text to every pivot and back, in every variant."""
        pools: list[list[Candidate]] = [[] for _ in rows]
        live = []
        for i, row in enumerate(rows):
            if row.text.strip() and len(row.text) <= _MAX_CHARACTERS:
                live.append(i)
        for pivot, (forward, back) in enumerate(pairs):
            for variant in range(self.variants):
                sources = []
                for i in live:
                    rng = row_random(seed, f"noise.{pivot}.{variant}", rows[i])
                    sources.append(self.noisy(rows[i].text, forward.unknown, rng))
                for i, text in zip(live, back(forward(sources)), strict=True):
                    pools[i].append((text, self.models[pivot][0]))
        return pools

    def noisy(self, text: str, mask: str, rng: random.Random) -> str:
        """Insert frequent words or mask words of a text at random places (DebCSE §4.2)."""
        if self.noise == "none":
            return text
        count = rng.randint(*self.noise_words)
        if rng.choice(("insert", "mask")) == "insert":
            # All words are drawn before the first place: the order of the draws is part of a seed.
            words = [rng.choice(FREQUENT) for _ in range(count)]
            for word in words:
                starts = [match.start() for match in re.finditer(r"\S+", text)]
                place = rng.choice([*starts, len(text)])
                if place < len(text):
                    text = f"{text[:place]}{word} {text[place:]}"
                else:
                    text = f"{text} {word}"
            return text
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        chosen = rng.sample(spans, min(count, len(spans)))
        # From the end, so that earlier offsets stay valid.
        for start, end in sorted(chosen, reverse=True):
            text = text[:start] + mask + text[end:]
        return text


class _Translator:
    """A translation model in evaluation mode.

    Args:
        name: Local folder or hub id of a Marian or FSMT model.
        beams: Width of the beam search.
    """

    def __init__(self, name: str, beams: int) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        from opencse.encoder.device import choose_device
        from opencse.encoder.folder_check import closed_folder
        from opencse.encoder.loading import check_before_loading, local_folder, readable_errors
        from opencse.encoder.model_folder import quiet

        folder = local_folder(name, resolve(name))
        check_before_loading(name, folder)
        options: Any = {"local_files_only": True, "trust_remote_code": False}
        needed = f'{name} (translators need pip install "opencse[mt]")'
        with readable_errors(needed), quiet(), closed_folder(folder):
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, **options)
            self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                folder, use_safetensors=True, **options
            )
        # Otherwise transformers warns that max_new_tokens takes precedence.
        self.model.generation_config.max_length = None
        self._beams = beams
        self.model.to(choose_device()).eval()
        self.unknown: str = self.tokenizer.unk_token or "[MASK]"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Translate n texts in batches of similar length."""
        import torch

        out = [""] * len(texts)
        lengths = []
        if texts:
            lengths = [len(ids) for ids in self.tokenizer(list(texts))["input_ids"]]
        order = sorted(range(len(texts)), key=lambda i: (lengths[i], i))
        for batch in chunks(order, _BATCH):
            encoded = self.tokenizer(
                [texts[i] for i in batch], return_tensors="pt", padding=True, truncation=True
            )
            with torch.inference_mode():
                generated = self.model.generate(
                    input_ids=encoded["input_ids"].to(self.model.device),
                    attention_mask=encoded["attention_mask"].to(self.model.device),
                    max_new_tokens=_MAX_NEW_TOKENS,
                    num_beams=self._beams,
                    do_sample=False,
                )
            translated = self.tokenizer.batch_decode(generated, skip_special_tokens=True)
            for i, text in zip(batch, translated, strict=True):
                out[i] = text.strip()
        return out
