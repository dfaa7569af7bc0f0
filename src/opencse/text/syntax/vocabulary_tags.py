"""SAN's static lexicon: one coarse tag for every entry of a tokenizer's vocabulary (SAN §3.1)."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from opencse.foundation.cache import cache_root
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import make_folder, write_text
from opencse.text.syntax import SpacyParser

VERSION = 1  # of the rules by which entries become words; part of the cache key


def cache_folder() -> Path:
    """Return the folder of the cached lexicons, within OPENCSE_CACHE or the user's cache folder."""
    return cache_root() / "lexicon"


def word_of(entry: str) -> str:
    """Return the word that a vocabulary entry spells, "" for a piece that continues a word ("##ing")."""
    if entry.startswith("##"):
        return ""
    return entry.lstrip("Ġ▁").replace("</w>", "").strip()


def static_lexicon(tokenizer: Any, parser: SpacyParser) -> list[str]:
    """Return a coarse tag for each id of a tokenizer; each entry is tagged as a sentence of its own.

    Pieces that continue a word get X, as published, and so do entries that spell no word; special tokens get "". The
    result is cached by vocabulary and parser.

    Args:
        tokenizer: A transformers tokenizer.
        parser: Tags the entries.
    """
    vocabulary = tokenizer.get_vocab()
    entries = [""] * (1 + max(vocabulary.values()))
    for entry, index in vocabulary.items():
        entries[index] = entry
    special = set(tokenizer.all_special_ids)
    key = hashlib.sha256(json.dumps([VERSION, parser.digest, sorted(special), entries]).encode()).hexdigest()
    path = cache_folder() / f"{key[:32]}.json"
    with suppress(OSError, ValueError):  # missing or damaged
        cached = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(cached, list) and len(cached) == len(entries):
            return cached
    words = ["" if index in special else _readable(tokenizer, entry) for index, entry in enumerate(entries)]
    parsed = parser.parse([word for word in words if word])
    parsed_tags = (tokens[0].pos if tokens else "X" for tokens in parsed)
    tags = ["" if index in special else (next(parsed_tags) or "X") if word else "X" for index, word in enumerate(words)]
    with suppress(OSError, OpencseError):  # without a writable cache the next call is only slower
        write_text(make_folder(path.parent) / path.name, json.dumps(tags))
    return tags


def _readable(tokenizer: Any, entry: str) -> str:
    """Return the word of an entry; bytes of byte-level vocabularies are decoded."""
    word = word_of(entry)
    if (word and "Ġ" in entry) or (word and not word.isascii()):
        return tokenizer.convert_tokens_to_string([entry]).strip()
    return "" if word.startswith("[unused") else word
