"""Grammar of sentences: tags, lemmas and dependencies, verb forms, and the tags of a tokenizer's vocabulary."""

from functools import lru_cache

from opencse.text.syntax.tokens import Parser, Token

__all__ = ["Parser", "Token", "load_parser"]


@lru_cache(maxsize=2)
def load_parser(name: str = "syntax") -> Parser:
    """Return the bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.

    Constructors over the same rows share the pipeline and its most recent parses.

    Args:
        name: "syntax", the name or folder of a spaCy pipeline, or "blank:de" for the tokenizer of a language.
    """
    from opencse.text.syntax.spacy_parser import CachedParser, SpacyParser

    return CachedParser(SpacyParser(name))
