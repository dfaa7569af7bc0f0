"""A saved model loads in the oldest sentence-transformers that its card names.

`OPENCSE_OLDEST` names a Python that has it, for example `python -m venv old && old/bin/pip install
sentence-transformers==3.4.1 "transformers<5"`. Without it, the files are compared with what that
version reads.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.saving import OLDEST
from tests.tiny import tiny_bert

TEXTS = ["the cat sits", "a dog"]
READ = {  # the arguments that sentence-transformers 3.4 takes from each file
    "Transformer": {"max_seq_length", "do_lower_case"},
    "Pooling": {
        "word_embedding_dimension",
        "include_prompt",
        *(
            f"pooling_mode_{mode}_tokens"
            for mode in ("mean", "max", "mean_sqrt_len", "weightedmean")
        ),
        *("pooling_mode_cls_token", "pooling_mode_lasttoken"),
    },
    "Dense": {"in_features", "out_features", "bias", "activation_function"},
    "WordWeights": {"vocab", "word_weights", "unknown_word_weight"},
    "WeightedLayerPooling": {"word_embedding_dimension", "layer_start", "num_hidden_layers"},
}


@pytest.fixture(params=["cls", "mean", "first_last", "mask"])
def saved(tmp_path, request) -> tuple[Path, np.ndarray]:
    prompt = 'This sentence : "{}" means {mask}' if request.param == "mask" else None
    encoder = load_encoder(
        tiny_bert(tmp_path / "plain"), pooling=request.param, prompt=prompt, device="cpu"
    ).eval()
    width = encoder.get_embedding_dimension()
    encoder = SentenceTransformer(
        modules=[*encoder, modules.Dense(width, 8), modules.Normalize()], device="cpu"
    )
    save_encoder(encoder, tmp_path / "model")
    return tmp_path / "model", encoder.encode(TEXTS)


def test_the_files_are_those_of_the_oldest_version(saved) -> None:
    folder, vectors = saved
    for module in json.loads((folder / "modules.json").read_text()):
        package, _, kind = module["type"].rpartition(".")
        assert package == "sentence_transformers.models"
        file = "sentence_bert_config.json" if kind == "Transformer" else "config.json"
        if kind in READ:
            assert set(json.loads((folder / module["path"] / file).read_text())) <= READ[kind]
    assert (
        json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"]
        != "TokenizersBackend"
    )
    np.testing.assert_array_equal(
        SentenceTransformer(str(folder), device="cpu").encode(TEXTS), vectors
    )


@pytest.mark.skipif(
    "OPENCSE_OLDEST" not in os.environ, reason="no Python with the oldest version is named"
)
def test_the_oldest_version_loads_it(saved, tmp_path) -> None:
    folder, vectors = saved
    script = (
        "import sys, numpy, sentence_transformers as s; assert s.__version__.startswith(sys.argv[3]), s.__version__;"
        f"numpy.save(sys.argv[2], s.SentenceTransformer(sys.argv[1], device='cpu').encode({TEXTS!r}))"
    )
    command = [
        os.environ["OPENCSE_OLDEST"],
        "-c",
        script,
        str(folder),
        str(tmp_path / "v.npy"),
        OLDEST,
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, env=environment)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), vectors, atol=1e-6)
