"""What a sentence is made of: tags, lemmas and dependencies; the static lexicon of a tokenizer's vocabulary."""

from functools import lru_cache

from opencse.syntax.tokens import Parser, Token

__all__ = ["Parser", "Token", "load_parser"]


@lru_cache(maxsize=2)
def load_parser(name: str = "syntax", *, batch_size: int = 256) -> Parser:
    """Return the bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.

    Constructors that run one after another over the same rows share it, and what it has just parsed.
    """
    from opencse.syntax.recent import Recent
    from opencse.syntax.spacy import SpacyParser

    return Recent(SpacyParser(name, batch_size=batch_size))
