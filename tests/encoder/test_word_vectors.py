from __future__ import annotations

import gzip

import numpy as np
import pytest

from opencse.commands.evaluate import evaluate
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.word_vectors import load_word_vectors
from opencse.foundation.errors import OpencseError

LINES = "dog 1 0 2\ncat 0 1 4\nrun -1 2 0\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text(LINES)
    return path


def test_a_sentence_is_the_average_of_its_known_words(file) -> None:
    model = load_word_vectors(file)
    vectors = model.encode(["The Dog, a cat", "xylophone", "dog dog run"])
    np.testing.assert_allclose(
        vectors, [[0.5, 0.5, 3], [0, 0, 0], [1 / 3, 2 / 3, 4 / 3]], rtol=1e-6
    )


def test_the_head_of_word2vec_and_compression_are_read(tmp_path, file) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(("3 3\n" + LINES).encode()))
    texts = ["dog", "cat", "run"]
    np.testing.assert_array_equal(
        load_word_vectors(path).encode(texts), load_word_vectors(file).encode(texts)
    )


def test_it_is_saved_and_evaluated_like_any_model(tmp_path, file) -> None:
    model = load_word_vectors(file)
    folder = tmp_path / "glove"
    save_encoder(model, folder)
    texts = ["a dog", "cat run"]
    np.testing.assert_array_equal(load_encoder(folder).encode(texts), model.encode(texts))

    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\ndog\tdog cat\t5\ndog\trun\t1\ncat\tcat\t4\n")
    scored = evaluate(str(folder), pairs=[pairs])
    assert scored.settings["dimension"] == 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no word vectors|cannot be read as word vectors"),
        ("dog\ncat\n", "has no word vectors"),
        ("dog 1 x\n", "cannot be read as word vectors"),
        ("dog 1 nan\n", "not finite"),
    ],
)
def test_other_files_are_refused(tmp_path, content, problem) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content)
    with pytest.raises(OpencseError, match=problem):
        load_word_vectors(path)


def test_a_missing_file_is_not_looked_for_elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OpencseError, match="no such file"):
        load_word_vectors("glove.6B.300d.txt.gz")
