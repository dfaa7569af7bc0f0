"""What a sentence is made of: tags, lemmas and dependencies; the static lexicon of a tokenizer's vocabulary."""

from opencse.syntax.tokens import Parser, Token

__all__ = ["Parser", "Token", "load_parser"]


def load_parser(name: str = "syntax", *, batch_size: int = 256) -> Parser:
    """Return the bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder."""
    from opencse.syntax.spacy import SpacyParser

    return SpacyParser(name, batch_size=batch_size)
