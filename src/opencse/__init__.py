"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

__version__ = "0.1.0"
