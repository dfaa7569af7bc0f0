"""All kinds of views by their name in a recipe, and their interface.

A `View` is a small frozen dataclass with the options of a kind. `view.open()` loads its models and
returns an `OpenedView`, which maps the rows of a corpus to texts. `build_views` writes columns of
them for a corpus.

Kinds that depend on more than their own row read the sentences of the corpus by number. These are
kept on disk, so any process on any machine that sees the folder can read them.
"""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opencse.foundation.cache import Store, is_whole, new_store, store_folder
from opencse.foundation.chunks import chunks
from opencse.foundation.lazy import Kinds, lazy_names
from opencse.foundation.workers import Engine, Local
from opencse.text.corpus import Corpus
from opencse.text.surface import match_error_rate

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone


_CLASSES = {
    "negation": "opencse.text.english.negation:Negation",
    "back_translation": "opencse.text.generated.paraphrases:BackTranslation",
    "candidate_table": "opencse.text.generated.paraphrases:CandidateTable",
    "substitution": "opencse.text.generated.likely_words:Substitution",
    "language_model": "opencse.text.generated.language_model:LanguageModel",
    "phrase_swap": "opencse.text.english.order:PhraseSwap",
    "main_clause": "opencse.text.english.clause:MainClause",
    "antonym_swap": "opencse.text.english.one_word:AntonymSwap",
    "negated_antonym": "opencse.text.english.predicates:NegatedAntonym",
    "negative_word": "opencse.text.english.one_word:NegativeWord",
    "role_pair": "opencse.text.english.roles:RolePairs",
    "antonym_quadruple": "opencse.text.english.predicates:AntonymQuadruple",
    "claim": "opencse.text.english.claims:Claim",
    "passive": "opencse.text.english.transitive:Passive",
    "number_swap": "opencse.text.english.claims:NumberSwap",
    "entity_swap": "opencse.text.english.claims:EntitySwap",
    "reordering": "opencse.text.english.order:Reordering",
    "question": "opencse.text.english.questions:Question",
    "topic_question": "opencse.text.english.questions:TopicQuestion",
    "keywords": "opencse.text.english.questions:Keywords",
    "question_pair": "opencse.text.english.asked:QuestionPair",
    "passage": "opencse.text.perturbed:Passage",
    "span_mask": "opencse.text.perturbed:SpanMask",
    "insertion": "opencse.text.generated.likely_words:Insertion",
    "word_substitution": "opencse.text.generated.likely_words:WordSubstitution",
    "deletion": "opencse.text.perturbed:Deletion",
    "random": "opencse.text.perturbed:RandomSentence",
    "document_spans": "opencse.text.spans:DocumentSpans",
    "next_sentence": "opencse.text.perturbed:NextSentence",
    "debiased_negatives": "opencse.text.mined.debiased:DebiasedNegatives",
    "debiased_positives": "opencse.text.mined.debiased:DebiasedPositives",
    "hard_negatives": "opencse.text.mined.vectors:HardNegatives",
}

SHIPPED_KINDS = tuple(_CLASSES)
"""The kinds that come with the package, without those of plug-ins."""

VIEWS: MutableMapping[str, type[View]] = Kinds(_CLASSES, "opencse.views")
"""The class of each kind of view, by its name in a recipe."""

_PLACES = {**_CLASSES, "build_views": "opencse.text.views.builder:build_views"}
_NAMES = [place.partition(":")[2] for place in _PLACES.values()]

__all__ = ["VIEWS", "ViewText", "OpenedView", "View", "SourceRow", *_NAMES]

# The class of a kind, or the builder, is imported when it is first used.
__getattr__ = lazy_names(__name__, _PLACES)

Score = float | int | str | None
UNIT = 512
"""Rows that are built together. Batches form within them, whatever the number of workers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRow:
    """One sentence of the corpus, with the views already built from it.

    Attributes:
        id: Number of the sentence, counted from 0 over the lines that are not blank.
        text: The sentence.
        views: Texts of the columns already built, by column; None where a view found no
            view.
    """

    id: int
    text: str
    views: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewText:
    """A sentence that a view derived from a row, or the reason why there is none.

    Attributes:
        text: The related sentence; None if no rule applies.
        rule: Name of the rule that was applied, or the reason why none was.
        scores: Values that are recorded with it, by name.
    """

    text: str | None
    rule: str
    scores: Mapping[str, Score] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OpenedView:
    """A view with its models loaded.

    Attributes:
        build: Returns for each row a view, or a list of one for each column; they are independent
            of the other rows.
        digest: A hash of the weights and tables that the output depends on; "" if there are none.
    """

    build: Callable[[Sequence[SourceRow]], list[Any]]
    digest: str = ""

    def __call__(self, rows: Sequence[SourceRow]) -> list[Any]:
        """Build the views of some rows."""
        return self.build(rows)


@dataclass(frozen=True, kw_only=True)
class View:
    """Base class of all kinds of views, with the options of one.

    Class attributes:
        kind: Name of the kind in a recipe.
        scores: Columns that are recorded with the text: name to type ("float", "int" or "string").
        unit: Number of rows that are built together, a multiple of `UNIT`.
        uses_gpu: Whether it runs a neural network for each row.

    Attributes:
        of: The column to start from: the corpus's own (`text`), or one built earlier, for example
            to negate an antonym.
    """

    kind: ClassVar[str]
    scores: ClassVar[Mapping[str, str]] = {}
    unit: ClassVar[int] = UNIT
    uses_gpu: ClassVar[bool] = False

    of: str = "text"

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be built first, in addition to `of`."""
        return ()

    @property
    def sources(self) -> tuple[str, ...]:
        """All columns that must be built first."""
        if self.of == "text":
            return self.needs
        return (self.of, *self.needs)

    @property
    def needs_corpus(self) -> bool:
        """Whether it needs the complete corpus before any row is built."""
        return type(self).prepare is not View.prepare

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns that `[build.NAME]` builds: NAME, or several."""
        return (name,)

    def check(self) -> None:
        """Check that the models it needs are on this machine, without loading them.

        Raises:
            OpencseError: One is missing; the message tells what to do.
        """
        for name in self.__dataclass_fields__:
            nested = getattr(self, name)
            if isinstance(nested, View):
                nested.check()

    def prepare(
        self, sentences: SentenceStore, engine: Engine, models: Mapping[str, Backbone]
    ) -> Any:
        """Do the work that needs the complete corpus, once, before any row is built.

        Most kinds need no such work.

        Args:
            sentences: All sentences, by number.
            engine: Runs batch work.
            models: Models that are open already, by name.

        Returns:
            The argument of `open` in each process: small and picklable.
        """
        return None

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load models and tables, and return what builds the texts.

        Args:
            seed: The only source of randomness.
            prepared: What `prepare` returned.
        """
        raise NotImplementedError

    def preview(self, *texts: str, seed: int = 0) -> list[Any]:
        """Return the views of some sentences, to try a kind.

        The sentences are the corpus of kinds that need one.

        Returns:
            For each sentence a text or None, or a list of one per column.
        """
        prepared = None
        if self.needs_corpus:
            digest, _ = texts_hash(texts)
            sentences = open_sentence_store(texts, digest)
            prepared = self.prepare(sentences, Local(processes=1), {})
        opened = self.open(seed=seed, prepared=prepared)
        rows = [SourceRow(id=i, text=text) for i, text in enumerate(texts)]
        shown: list[Any] = []
        for view in opened(rows):
            if isinstance(view, list):
                shown.append([part.text for part in view])
            else:
                shown.append(view.text)
        return shown


def row_seed(seed: int, kind: str, row: SourceRow) -> int:
    """Return the 64-bit seed of one row, which depends on its number, not on other rows' draws."""
    digest = hashlib.blake2b(f"{seed}\0{kind}\0{row.id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def row_random(seed: int, kind: str, row: SourceRow) -> random.Random:
    """Return the random generator of one row."""
    return random.Random(row_seed(seed, kind, row))


def bundle_digest(*parts: str | bytes) -> str:
    """Return one SHA-256 of several strings, which differs for ("ab", "c") and ("a", "bc")."""
    return texts_hash(parts)[0]


def with_error_rate(
    rows: Sequence[SourceRow], results: Sequence[tuple[str | None, str]]
) -> list[ViewText]:
    """Return views of n rows with their match error rate as the score `mer`.

    Args:
        rows: The rows.
        results: For each row a text, or None, and the rule.
    """
    done = []
    references = []
    hypotheses = []
    for i, (text, _) in enumerate(results):
        if text is not None:
            done.append(i)
            references.append(rows[i].text)
            hypotheses.append(text)
    rates = match_error_rate(references, hypotheses)
    rate_of = dict(zip(done, rates.tolist(), strict=True))
    views = []
    for i, (text, rule) in enumerate(results):
        views.append(ViewText(text=text, rule=rule, scores={"mer": rate_of.get(i)}))
    return views


class SentenceStore(ABC):
    """All texts of a corpus by the builder's row numbers; pickled as a path.

    Attributes:
        texts_hash: Hash of the texts.
    """

    texts_hash: str

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def keys(self) -> np.ndarray:
        """uint64 (n,): equal for texts that differ only in case and white space."""

    @abstractmethod
    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with the given numbers, int64 (m,)."""

    def range(self, start: int, stop: int) -> list[str]:
        """Return the texts with the numbers from `start` up to, but not including, `stop`."""
        return self.take(np.arange(start, min(stop, len(self))))


@dataclass(frozen=True)
class _CachedSentences(SentenceStore):
    """Texts and their keys in the cache, memory-mapped, so that their number is not limited by memory."""

    store: Store
    texts_hash: str

    def __len__(self) -> int:
        return len(self.store)

    @property
    def keys(self) -> np.ndarray:
        """uint64 (n,), memory-mapped."""
        return self.store.columns["keys"].values

    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with the given numbers, int64 (m,)."""
        return self.store.texts("texts", ids)


@dataclass(frozen=True)
class SampledSentences(SentenceStore):
    """The texts of a sample, which each process reads from its table when it first needs one.

    A sample fits in memory, and is on disk already: another copy in the cache would only cost time.
    """

    path: Path
    texts_hash: str

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def keys(self) -> np.ndarray:
        """uint64 (n,), computed once in each process."""
        return _keys_of_sample(self.path, self.texts_hash)

    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with the given numbers, int64 (m,)."""
        texts = self._texts
        return [texts[number] for number in ids.tolist()]

    @property
    def _texts(self) -> list[str]:
        return _texts_of_sample(self.path, self.texts_hash)


# The hash is part of the key because a later run may write another sample to the same path.
@lru_cache(maxsize=1)
def _texts_of_sample(path: Path, texts_hash: str) -> list[str]:
    return list(Corpus(path).texts())


@lru_cache(maxsize=1)
def _keys_of_sample(path: Path, texts_hash: str) -> np.ndarray:
    return _sentence_keys(_texts_of_sample(path, texts_hash))


def _sentence_keys(texts: Iterable[str]) -> np.ndarray:
    """Return a key of each text that ignores case and white space, uint64 (n,), to recognize duplicates."""
    keys = b""
    for text in texts:
        folded = " ".join(text.lower().split()).encode("utf-8", "replace")
        keys += hashlib.blake2b(folded, digest_size=8).digest()
    return np.frombuffer(keys, dtype="<u8")


def texts_hash(texts: Iterable[str | bytes]) -> tuple[str, int]:
    """Return a SHA-256 of the texts in order, and their number."""
    joined = hashlib.sha256()
    count = 0
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        joined.update(len(data).to_bytes(8, "little") + data)
        count += 1
    return joined.hexdigest(), count


def open_sentence_store(texts: Iterable[str], texts_hash: str) -> SentenceStore:
    """Open the sentences of a corpus in the cache; write them first if they are not there.

    Writing takes one pass and constant memory. The file takes the bytes of the texts and 16 bytes
    for each text.

    Args:
        texts: All texts, in order; only read if they are not in the cache yet.
        texts_hash: Hash of the texts, from `texts_hash`.
    """
    folder = store_folder("sentences", texts_hash)
    if not is_whole(folder):
        with new_store(folder, {"texts": np.uint8, "keys": np.uint64}) as writer:
            for chunk in chunks(texts, 8192):
                texts_as_bytes = [text.encode("utf-8", "replace") for text in chunk]
                writer.add(texts_as_bytes, _sentence_keys(chunk))
    return _CachedSentences(Store(folder), texts_hash)
