"""From raw text to the sentences that views are built of: a sample, partly cut to main clauses, and a table's own."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.data.paraphrases import paraphrase_columns
from opencse.errors import OpencseError
from opencse.io.corpus import content_hash, read_rows, read_texts
from opencse.io.files import replaced_file
from opencse.io.parquet import parquet_metadata
from opencse.progress import timed
from opencse.recipes import CorpusSettings
from opencse.syntax import load_parser
from opencse.syntax.asides import parse_without_asides
from opencse.views.constructor import SourceRow
from opencse.views.rewriting.attribute_clause import attribute_clause, is_predicate
from opencse.views.rewriting.lexicon import OPPOSITE_TABLES, lexicon_bytes
from opencse.views.rewriting.main_clause import MainClause
from opencse.views.rewriting.opposites import opposed_adjectives, opposed_verbs

_CHUNK = 4096
_LEAST_EACH = 8
_VERBS_EACH = 4
"""Sentences that are drawn for a verb, for one that is drawn for an adjective: there are far fewer verbs."""


def sample(
    corpus: str | Path, settings: CorpusSettings, out: Path, *, table: str | Path | None = None, seed: int = 0
) -> Path:
    """Write the corpus that a recipe's views are built of, one column `text`.

    The rows of a table of paraphrases come on top of `settings.rows`: its sentences are the ones that have any.

    Args:
        corpus: Raw sentences in any format of `opencse.io.corpus`.
        settings: What to do to them.
        out: The Parquet file to write; one that was made from the same input is left as it is.
        table: A table of paraphrases, whose sentences are added.
        seed: Chooses the sample, the sentences that are cut, and the order.

    Returns:
        `out`.

    Raises:
        OpencseError: The corpus or the table cannot be read, or there is no sentence.
    """
    sources = [content_hash(corpus), content_hash(table) if table is not None else ""]
    words = hashlib.sha256(lexicon_bytes(*OPPOSITE_TABLES)).hexdigest() if settings.opposites else ""
    made_from = hashlib.sha256(
        json.dumps([sources, settings.rows, settings.opposites, words, settings.clauses, seed]).encode()
    ).hexdigest()
    if out.is_file() and parquet_metadata(out).get(b"made_from") == made_from.encode():
        return out
    chance = random.Random(seed)
    with timed("sampling"):
        plain, opposed = _sample(corpus, settings, chance)
    with timed("parsing and rewriting"):
        texts = list(dict.fromkeys([*_cut(plain, settings.clauses, chance), *_said(opposed, settings.clauses, chance)]))
    if table is not None:
        text_column, _ = paraphrase_columns(table)
        texts += dict.fromkeys(text for (text,) in read_rows(table, (text_column,)) if text and text.strip())
    if not texts:
        raise OpencseError(f"{corpus} has no sentence", "Give a corpus with at least one line that is not blank.")
    chance.shuffle(texts)
    schema = pa.schema([("text", pa.string())], metadata={"made_from": made_from})
    with replaced_file(out) as path:
        pq.write_table(pa.table({"text": texts}, schema=schema), path, write_page_checksum=True)
    return out


class _Draw:
    """So many of a stream, each as likely as any other (algorithm R: one pass, bounded memory); or all."""

    def __init__(self, size: int | None, chance: random.Random) -> None:
        self.kept: list[str] = []
        self._size, self._chance, self._seen = size, chance, 0

    def offer(self, text: str) -> None:
        self._seen += 1
        if self._size is None or len(self.kept) < self._size:
            self.kept.append(text)
        elif (place := self._chance.randrange(self._seen)) < self._size:
            self.kept[place] = text


class _Balanced:
    """A sample of a stream in which adjectives with an opposite are equally frequent, as far as the stream has them.

    Verbs with a complementary opposite ("to accept") are equally frequent, too, and more so than adjectives. Words
    whose opposite the stream never uses are left out: of what is thematic nobody says that it is unthematic.
    """

    def __init__(self, size: int, chance: random.Random) -> None:
        self._size, self._chance = size, chance
        self._rounds = max(_LEAST_EACH, size // 200)  # for one adjective: a stream with fewer than 200 gives fewer
        self._draws: dict[str, _Draw] = {}
        self._opposite: dict[str, str] = {}

    def offer(self, text: str) -> None:
        for word, opposite in (opposed_adjectives(text) | opposed_verbs(text)).items():
            self._opposite[word] = opposite
            self._draws.setdefault(word, _Draw(self._rounds * _each(word), self._chance)).offer(text)

    def kept(self) -> dict[str, str]:
        """Return each sentence, and the adjective or verb that it is there for."""
        used = {word: draw for word, draw in sorted(self._draws.items()) if self._opposite[word] in self._draws}
        found: dict[str, str] = {}
        for i in range(self._rounds):
            for word, draw in used.items():
                each = _each(word)
                for text in draw.kept[i * each : (i + 1) * each]:
                    if len(found) == self._size:
                        return found
                    found.setdefault(text, word)
        return found


def _each(word: str) -> int:
    """Return how many sentences a word gets in each round."""
    return _VERBS_EACH if _is_verb(word) else 1


def _is_verb(word: str) -> bool:
    return word.startswith("to ")


def _sample(corpus: str | Path, settings: CorpusSettings, chance: random.Random) -> tuple[list[str], dict[str, str]]:
    """Return a random sample of distinct sentences, and those drawn for an adjective with an opposite, with it."""
    plain = _Draw(settings.rows, chance)
    opposed = _Balanced(settings.opposites, random.Random(chance.random()))
    for text in read_texts(corpus):
        plain.offer(text)
        if settings.opposites:
            opposed.offer(text)
    return list(dict.fromkeys(plain.kept)), opposed.kept()


def _said(opposed: Mapping[str, str], clauses: float, chance: random.Random) -> list[str]:
    """Return each sentence of a verb or predicate adjective, perhaps cut, and the statement made of an attribute."""
    if not opposed:
        return []
    outright: list[str] = []
    built: list[str] = []
    texts = list(opposed)
    parser = load_parser("syntax")
    for start in range(0, len(texts), _CHUNK):
        part = texts[start : start + _CHUNK]
        for text, tokens in zip(part, parse_without_asides(parser, part), strict=True):
            if _is_verb(opposed[text]) or is_predicate(tokens, opposed[text]):
                outright.append(text)
            elif clause := attribute_clause(text, tokens, opposed[text]):
                built.append(clause)
    return [*_cut(outright, clauses, chance), *built]


def _cut(texts: Sequence[str], share: float, chance: random.Random) -> list[str]:
    """Return a share of the sentences cut to their main clause where that works."""
    out = list(texts)
    chosen = [i for i in range(len(out)) if chance.random() < share]
    cutter = MainClause().open() if chosen else None
    for start in range(0, len(chosen), _CHUNK):
        assert cutter is not None
        part = chosen[start : start + _CHUNK]
        for i, view in zip(part, cutter([SourceRow(id=i, text=out[i]) for i in part]), strict=True):
            out[i] = view.text or out[i]
    return out
