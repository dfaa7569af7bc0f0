"""Grammar of sentences from a spaCy pipeline, and edits by character offsets."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS, error_reason

BUNDLED = "syntax"
"""Name of the pipeline that ships with the library."""

_BLANK = "blank:"
# Sentences whose parses are kept, some tens of megabytes.
_KEPT = 4096
# Texts that are parsed together.
_BATCH = 256
# spaCy's own limit for one text.
_MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a sentence.

    Attributes:
        text: The token as it is written.
        start: Offset of its first character in the sentence.
        end: Offset of the character after its last.
        lemma: Its dictionary form.
        tag: Fine tag (Penn Treebank: VBZ, NN, ...).
        pos: Coarse tag (Universal Dependencies: VERB, NOUN, ...).
        head: Index of its head; its own index for a root.
        relation: Relation to its head, by Universal Dependencies or the scheme that the pipeline
            was trained with.
    """

    text: str
    start: int
    end: int
    lemma: str
    tag: str
    pos: str
    head: int
    relation: str


class SpacyParser:
    """A spaCy pipeline; it keeps its most recent parses. `load_parser` opens one.

    Args:
        name: "syntax" for the bundled pipeline, an installed spaCy package (`en_core_web_sm`), a
            folder, or "blank:de" for spaCy's tokenizer of a language, without tags and relations.

    Raises:
        OpencseError: There is no such pipeline, or it has no tagger or no parser.
    """

    def __init__(self, name: str = BUNDLED) -> None:
        self._blank = name.startswith(_BLANK)
        self._nlp = _pipeline(name)
        self._known: dict[str, tuple[Token, ...]] = {}

    @property
    def digest(self) -> str:
        """SHA-256 of the pipeline's bytes, recorded with everything that is built with it."""
        return hashlib.sha256(self._nlp.to_bytes(exclude=["vocab"])).hexdigest()

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text, without white space, in order; none for an empty text."""
        wanted = list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._known]
        if len(self._known) + len(new) > _KEPT:
            # The memory is full: only what is asked for now stays.
            self._known = {text: self._known[text] for text in wanted if text in self._known}
        cut = (text[:_MAX_CHARACTERS] for text in new)
        docs = self._nlp.pipe(cut, batch_size=_BATCH)
        for text, doc in zip(new, docs, strict=True):
            tokens = tuple(_tokens(doc))
            if self._blank:
                tokens = _final_mark_apart(tokens)
            self._known[text] = tokens
        return iter([self._known[text] for text in wanted])


load_parser = lru_cache(maxsize=2)(SpacyParser)
"""Opens a pipeline by its name. Views of the same rows share it and its most recent parses."""


def _pipeline(name: str) -> Any:
    import spacy

    if name.startswith(_BLANK):
        code = name.removeprefix(_BLANK)
        try:
            return spacy.blank(code)
        except ImportError as error:
            raise OpencseError(
                f"spaCy knows no language {code!r}", "Use a code such as 'de'."
            ) from error
    try:
        with warnings.catch_warnings():
            # The pipeline was trained with another patch release of spaCy.
            warnings.simplefilter("ignore", UserWarning)
            path = ASSETS / "syntax" if name == BUNDLED else name
            nlp = spacy.load(path, exclude=["ner", "textcat", "entity_linker"])
    except OSError as error:
        raise OpencseError(
            f"no spaCy pipeline {name!r}",
            f"Install it (python -m spacy download {name}), or use {BUNDLED!r}.",
        ) from error
    # spaCy's parsers of configurations and files have no common class of errors.
    except Exception as error:
        raise OpencseError(
            f"the spaCy pipeline {name!r} cannot be loaded ({error_reason(error)})",
            f"Install it again, or use {BUNDLED!r}.",
        ) from error
    lacking = [part for part in ("tagger", "parser") if part not in nlp.pipe_names]
    if lacking:
        raise OpencseError(
            f"the spaCy pipeline {name!r} has no {' and no '.join(lacking)}", f"Use {BUNDLED!r}."
        )
    return nlp


def _final_mark_apart(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Split the full stop off the last token: a blank pipeline takes "2021." for an ordinal."""
    if not tokens:
        return tokens
    last = tokens[-1]
    if len(last.text) < 2 or not last.text.endswith("."):
        return tokens
    word = replace(last, text=last.text[:-1], end=last.end - 1)
    stop = replace(last, text=".", start=last.end - 1, lemma=".", head=len(tokens))
    return (*tokens[:-1], word, stop)


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


Edit = tuple[int, int, str]
"""Replace the characters from start to end (exclusive) by a string."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits applied.

    Raises:
        ValueError: Two edits overlap.
    """
    pieces = []
    place = 0
    for start, end, new in sorted(edits):
        if start < place:
            raise ValueError(f"edits overlap at character {start}")
        pieces.append(text[place:start])
        pieces.append(new)
        place = end
    pieces.append(text[place:])
    return "".join(pieces)


def match_case(word: str, model: str) -> str:
    """Return a word in the case of another: all capitals, a first capital, or unchanged."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word


def decapitalise(word: str) -> str:
    """Return the first word of a sentence without its capital; acronyms and "I'…" keep theirs."""
    if word.isupper() or word.startswith("I'"):
        return word
    return word[:1].lower() + word[1:]
