"""spaCy as a `Parser`: the bundled pipeline, or an installed one by name or folder."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.text.syntax.tokens import Parser, Token

_KEPT = 4096  # sentences, some tens of megabytes


class CachedParser:
    """A `Parser` that keeps the most recent parses of another one.

    Args:
        parser: Parses the texts that are not in the cache.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._known: dict[str, tuple[Token, ...]] = {}

    @property
    def digest(self) -> str:
        """Hash of the other parser."""
        return self._parser.digest

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text, in order."""
        wanted = list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._known]
        if len(self._known) + len(new) > _KEPT:
            self._known = {text: self._known[text] for text in wanted if text in self._known}
        self._known.update(zip(new, self._parser.parse(new), strict=True))
        return iter([self._known[text] for text in wanted])


BUNDLED = "syntax"
"""Name of the pipeline that ships with the library."""

BLANK = "blank:"
"""Beginning of the name of a pipeline that splits a language into words and does nothing else: "blank:de"."""

_NEEDED = ("tagger", "parser")
_BATCH = 256  # texts that are parsed together
_MAX_CHARACTERS = 1_000_000  # spaCy's own limit for one text


def bundled_path() -> Path:
    """Return the folder of the bundled pipeline."""
    return Path(__file__).parents[2] / "assets" / "syntax"


class SpacyParser:
    """A spaCy pipeline as a `Parser`.

    Args:
        name: "syntax" for the bundled pipeline, an installed spaCy package (`en_core_web_sm`), a folder, or "blank:de"
            for spaCy's tokenizer of a language, without tags and relations.

    Raises:
        OpencseError: There is no such pipeline, or it has no tagger or no parser.
    """

    def __init__(self, name: str = BUNDLED) -> None:
        import spacy

        self.name = name
        self._blank = False
        if name.startswith(BLANK):
            self._nlp, self._blank = _blank(name.removeprefix(BLANK)), True
            return
        path = bundled_path() if name == BUNDLED else name
        try:
            with warnings.catch_warnings():
                # The pipeline was trained with another patch release of spaCy.
                warnings.simplefilter("ignore", UserWarning)
                self._nlp = spacy.load(path, exclude=["ner", "textcat", "entity_linker"])
        except OSError as error:
            raise OpencseError(
                f"no spaCy pipeline {name!r}", f"Install it (python -m spacy download {name}), or use {BUNDLED!r}."
            ) from error
        lacking = [part for part in _NEEDED if part not in self._nlp.pipe_names]
        if lacking:
            raise OpencseError(f"the spaCy pipeline {name!r} has no {' and no '.join(lacking)}", f"Use {BUNDLED!r}.")

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes of the pipeline."""
        return hashlib.sha256(self._nlp.to_bytes(exclude=["vocab"])).hexdigest()

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text, without white space."""
        for doc in self._nlp.pipe((text[:_MAX_CHARACTERS] for text in texts), batch_size=_BATCH):
            tokens = tuple(_tokens(doc))
            yield _final_mark_apart(tokens) if self._blank else tokens


def _blank(code: str) -> Any:
    import spacy

    try:
        return spacy.blank(code)
    except ImportError as error:
        raise OpencseError(f"spaCy knows no language {code!r}", "Use a code such as 'de'.") from error


def _final_mark_apart(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return tokens whose last one is the final mark: a blank pipeline takes "2021." for an ordinal."""
    if not tokens or len(tokens[-1].text) < 2 or not tokens[-1].text.endswith("."):
        return tokens
    last = tokens[-1]
    word = replace(last, text=last.text[:-1], end=last.end - 1)
    return (*tokens[:-1], word, replace(last, text=".", start=last.end - 1, lemma=".", head=len(tokens)))


def _tokens(doc: Any) -> Iterator[Token]:
    words = [token for token in doc if not token.is_space]
    place = {token.i: index for index, token in enumerate(words)}
    for index, token in enumerate(words):
        yield Token(
            text=token.text,
            start=token.idx,
            end=token.idx + len(token),
            lemma=token.lemma_ or token.lower_,
            tag=token.tag_,
            pos=token.pos_,
            head=place.get(token.head.i, index),
            relation=token.dep_,
        )
