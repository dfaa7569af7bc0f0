"""Sentence vectors as averages of word vectors that are read from a text file, such as GloVe's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.device import choose_device
from opencse.encoder.model_folder import quiet, require_finite
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import regular_file, translate_errors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_REMEDY = "Each line must have a word and its numbers, separated by spaces."


def load_word_vectors(path: str | Path) -> SentenceTransformer:
    """Load a file of word vectors as a model whose sentence vectors are averages (GloVe, fastText, word2vec as text).

    The modules are those of sentence-transformers, `WordEmbeddings` with its usual tokenizer and
    mean `Pooling`: words are separated by spaces, punctuation around them and common words (stop
    words) are left out, and a word that the file lacks is looked up in lower case. A text without a
    known word has the vector 0.

    Args:
        path: Lines with a word and its numbers, separated by spaces; a first line with two numbers
            is skipped. A name that ends in `.gz` is decompressed.

    Raises:
        OpencseError: The file cannot be read, or is no such text.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings

    # sentence-transformers would look for a missing file on a server.
    file = regular_file(path)
    with translate_errors(file, "cannot be read as word vectors", _REMEDY), quiet():
        words = WordEmbeddings.from_text_file(str(file))
    width = words.get_embedding_dimension()
    # Of a line without numbers, the word itself is left.
    if width == 0 or len(words.tokenizer.get_vocab()) < 2:
        raise OpencseError(f"{file}: has no word vectors", _REMEDY)
    require_finite(words, str(file))
    return SentenceTransformer(modules=[words, Pooling(width, "mean")], device=str(choose_device()))
