"""The sentences for which views are built: a sample, some cut to their main clause, and those of paraphrases."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import timed
from opencse.foundation.reading import regular_file
from opencse.foundation.tables import is_made_from, write_texts
from opencse.recipes.settings import CorpusSettings
from opencse.text.corpus import Corpus, Row, content_hash
from opencse.text.english.clause import MainClause
from opencse.text.english.lexicon import OPPOSITE_TABLES, lexicon_bytes
from opencse.text.english.parse import parse_without_asides
from opencse.text.languages import ENGLISH, LanguagePack
from opencse.text.syntax import load_parser
from opencse.text.views.registry import SourceRow

_CHUNK = 4096
_LEAST_EACH = 8
# Sentences sampled for a verb, for each one sampled for an adjective: far fewer verbs have an
# opposite.
_VERBS_EACH = 4


def sample(
    corpus: Corpus,
    settings: CorpusSettings,
    out: Path,
    *,
    table: str | Path | None = None,
    seed: int = 0,
    pack: LanguagePack = ENGLISH,
    columns: Iterable[str] = (),
) -> Corpus:
    """Write a sample of a corpus, for which the views of a recipe are built.

    Up to `settings.paraphrases` sentences of a table of paraphrases are added to the
    `settings.rows` that are sampled.

    Args:
        corpus: Raw sentences.
        settings: Size of the sample, and share of the sentences to cut.
        out: The Parquet file to write, with the column `text`; not written again if it was made
            from the same input.
        table: A table of sentences and paraphrases.
        seed: Seed of the sample, of the choice of sentences to cut, and of the order.
        pack: Rules of the language of the sentences.
        columns: Columns of the corpus to keep, where sentences are only drawn, not cut or chosen by
            their words.

    Returns:
        The sample, opened, under the name of the corpus.

    Raises:
        OpencseError: The corpus or the table cannot be read, or there is no sentence.
    """
    kept_columns = []
    if not (settings.clauses or settings.opposites):
        for name in columns:
            if name in corpus.columns and name != "text":
                kept_columns.append(name)
    dependencies = partial(_dependencies_hash, corpus, settings, table, seed, pack, kept_columns)
    # The first pass also hashes the corpus, so the hash is asked for before it only if that may save
    # the pass.
    if out.is_file() and is_made_from(out, dependencies()):
        return Corpus(out, corpus.name)

    rng = random.Random(seed)
    with timed("sampling"):
        plain = _Reservoir(settings.rows, rng)
        # A generator of its own: how many opposites a text has must not change the plain sample.
        balanced = _Balanced(settings.opposites, random.Random(rng.random()), pack)
        for text in corpus.texts():
            plain.offer(text)
            if settings.opposites:
                balanced.offer(text)
    with timed("parsing and rewriting"):
        drawn = list(dict.fromkeys(plain.kept))
        rewritten = _cut(drawn, settings.clauses, rng, pack)
        rewritten += _statements(balanced.kept(), settings.clauses, rng, pack)
        # Two sentences may have the same main clause.
        texts = list(dict.fromkeys(rewritten))
    if table is not None:
        text_column, _ = paraphrase_columns(table)
        paraphrased = _Reservoir(settings.paraphrases, rng)
        for text in dict.fromkeys(Corpus(table).texts(text_column)):
            paraphrased.offer(text)
        texts += paraphrased.kept
    if not texts:
        raise OpencseError(
            f"{corpus.path} has no sentence",
            "Give a corpus with at least one line that is not blank.",
        )
    rng.shuffle(texts)
    write_texts(out, _with_columns(texts, corpus, kept_columns), dependencies())
    return Corpus(out, corpus.name)


def _dependencies_hash(
    corpus: Corpus,
    settings: CorpusSettings,
    table: str | Path | None,
    seed: int,
    pack: LanguagePack,
    kept_columns: Sequence[str],
) -> str:
    """Return a hash of everything that a sample depends on, so that an equal one is not drawn again."""
    dependencies: list[Any] = [[corpus.content_hash, "" if table is None else content_hash(table)]]
    dependencies += [settings.rows, settings.opposites]
    if table is not None:
        dependencies.append(settings.paraphrases)
    words = ""
    if settings.opposites:
        words = hashlib.sha256(lexicon_bytes(*OPPOSITE_TABLES)).hexdigest()
    dependencies += [words, settings.clauses, seed]
    if pack is not ENGLISH:
        dependencies += [pack.code, pack.syntax]
    dependencies += kept_columns
    return hashlib.sha256(json.dumps(dependencies).encode()).hexdigest()


def _with_columns(
    texts: Sequence[str], corpus: Corpus, columns: Sequence[str]
) -> dict[str, Sequence[str | None]]:
    """Return the columns of a table of texts, with further columns of the rows that they were drawn from."""
    table: dict[str, Sequence[str | None]] = {"text": texts}
    if not columns:
        return table
    wanted = set(texts)
    cells: dict[str | None, Row] = {}
    for row in corpus.rows(["text", *columns]):
        if row[0] in wanted:
            cells[row[0]] = row[1:]
    # Sentences of a table of paraphrases are not in the corpus.
    nothing = (None,) * len(columns)
    for place, column in enumerate(columns):
        table[column] = [cells.get(text, nothing)[place] for text in texts]
    return table


class _Reservoir:
    """A uniform random sample of `size` texts of a stream (reservoir sampling, algorithm R); all if `size` is None."""

    def __init__(self, size: int | None, rng: random.Random) -> None:
        self.kept: list[str] = []
        self._size = size
        self._rng = rng
        self._seen = 0

    def offer(self, text: str) -> None:
        self._seen += 1
        if self._size is None or len(self.kept) < self._size:
            self.kept.append(text)
            return
        place = self._rng.randrange(self._seen)
        if place < self._size:
            self.kept[place] = text


class _Balanced:
    """A sample of a stream in which all adjectives with an opposite are equally frequent, if the stream allows it.

    Verbs with a complementary opposite ("to accept") are also equally frequent, at a higher rate
    than adjectives. A word is left out if its opposite never occurs in the stream: "thematic" has
    the opposite "unthematic" by its form, but nobody uses it.
    """

    def __init__(self, size: int, rng: random.Random, pack: LanguagePack) -> None:
        self._size = size
        self._rng = rng
        self._opposed_words = pack.opposed_words
        # Sentences of one adjective. A stream with fewer than 200 adjectives gives fewer than
        # `size` sentences.
        self._rounds = max(_LEAST_EACH, size // 200)
        self._reservoirs: dict[str, _Reservoir] = {}
        self._opposite: dict[str, str] = {}

    def offer(self, text: str) -> None:
        for word, opposite in self._opposed_words(text).items():
            self._opposite[word] = opposite
            if word not in self._reservoirs:
                self._reservoirs[word] = _Reservoir(self._rounds * _each(word), self._rng)
            self._reservoirs[word].offer(text)

    def kept(self) -> dict[str, str]:
        """Return the sampled sentences, each with the adjective or verb for which it was sampled."""
        sampled = self._reservoirs
        # Sorted, so that the order does not depend on which word came first in the stream.
        used = [word for word in sorted(sampled) if self._opposite[word] in sampled]
        sentences: dict[str, str] = {}
        for i in range(self._rounds):
            for word in used:
                share = _each(word)
                for text in sampled[word].kept[i * share : (i + 1) * share]:
                    if len(sentences) == self._size:
                        return sentences
                    sentences.setdefault(text, word)
        return sentences


def _each(word: str) -> int:
    """Return the number of sentences of a word in each round."""
    return _VERBS_EACH if word.startswith("to ") else 1


def _statements(
    opposed: Mapping[str, str], clauses: float, rng: random.Random, pack: LanguagePack
) -> list[str]:
    """Return sentences in which the word with an opposite is the predicate.

    A sentence with a verb or a predicate adjective is kept, or cut to its main clause with the
    probability `clauses`. An attribute ("the dirty water") is turned into a separate sentence
    ("The water is dirty.").
    """
    if not opposed:
        return []
    predicates: list[str] = []
    others: list[str] = []
    parser = load_parser(pack.syntax)
    for part in chunks(opposed, _CHUNK):
        for text, tokens in zip(part, parse_without_asides(parser, part), strict=True):
            statement = pack.statement(text, tokens, opposed[text])
            if statement is None:
                continue
            if statement == text:
                predicates.append(statement)
            else:
                # Made of an attribute, it is one clause already.
                others.append(statement)
    return _cut(predicates, clauses, rng, pack) + others


def _cut(texts: Sequence[str], share: float, rng: random.Random, pack: LanguagePack) -> list[str]:
    """Return the sentences, a random share of them cut to their main clause, where one is found."""
    out = list(texts)
    chosen = [i for i in range(len(out)) if rng.random() < share]
    if not chosen:
        # Opening the view would load a parser.
        return out
    cutter = pack.localised(MainClause()).open()
    for part in chunks(chosen, _CHUNK):
        rows = [SourceRow(id=i, text=out[i]) for i in part]
        for i, view in zip(part, cutter(rows), strict=True):
            out[i] = view.text or out[i]
    return out


_COLUMNS = (("text", "sentence"), ("paraphrase", "back_translation", "candidate"))


def paraphrase_settings(table: Path | None, layer: Mapping[str, Any]) -> list[str]:
    """Return the overrides with which a recipe's `[with.paraphrases]` reads the user's table; empty without a table.

    Raises:
        OpencseError: The table has no such columns.
    """
    if table is None:
        return []
    places = [place for place, _ in tables_of_kind(layer, "candidate_table")]
    place = places[0] if places else "build.paraphrase"
    text, paraphrase = paraphrase_columns(table)
    return [
        f"{place}.path={table}",
        f"{place}.text_column={text}",
        f"{place}.candidate_column={paraphrase}",
    ]


def tables_of_kind(
    table: Mapping[str, Any], kind: str, place: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the views of a kind below a recipe's table, each with its dotted key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            if value.get("kind") == kind:
                yield f"{place}{key}", value
            yield from tables_of_kind(value, kind, f"{place}{key}.")


def paraphrase_columns(table: str | Path) -> tuple[str, str]:
    """Return the columns of a table that hold sentences and their paraphrases.

    Raises:
        OpencseError: There is no such file, or it has no columns with known names.
    """
    # A corpus may be a folder; this table may not.
    present = Corpus(regular_file(table)).columns
    of_text, of_paraphrase = _COLUMNS
    text = _first_present(of_text, present)
    paraphrase = _first_present(of_paraphrase, present)
    if text is None or paraphrase is None:
        raise OpencseError(
            f"{table} is not a table of paraphrases: its columns are {', '.join(present)}",
            f"Name one {', and one '.join(' or '.join(names) for names in _COLUMNS)}.",
        )
    return text, paraphrase


def _first_present(names: Iterable[str], present: Container[str]) -> str | None:
    for name in names:
        if name in present:
            return name
    return None
