"""The language of a corpus, and the rules for it."""

from __future__ import annotations

from itertools import islice

from opencse.io.corpus import Corpus
from opencse.recipes import CorpusSettings
from opencse.views.languages import ChosenLanguage, choose_language

_SAMPLE = 500
"""Sentences by which the language is recognised."""


def choose_corpus_language(settings: CorpusSettings, corpus: Corpus) -> ChosenLanguage:
    """Return the rules for the sentences of a corpus: those of the recipe's language, or of the likeliest one.

    Raises:
        OpencseError: The recipe names an unknown language.
    """
    texts = list(islice(corpus.texts(), _SAMPLE)) if "text" in corpus.columns else []
    return choose_language(settings.language, texts, settings.syntax)
