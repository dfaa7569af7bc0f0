"""Layer means: the transformer's own hidden states, averaged over real tokens."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.layer_means import with_layer_means
from opencse.errors import OpencseError
from tests.tiny import tiny_bert

TEXTS = ["the cat sits", "a dog runs in the small garden today", "bread"]


def test_they_are_the_averages_of_the_hidden_states(tmp_path) -> None:
    folder = tiny_bert(tmp_path, layers=3)
    model = with_layer_means(load_encoder(folder, pooling="cls"), [1.0, 0.67, 0.0])
    found = Embedder(model).encode(TEXTS)
    assert found.shape == (3, 3 * 32)
    assert model.get_embedding_dimension() == 96
    plain = load_encoder(folder, pooling="cls")
    transformer = plain[0].auto_model.eval()
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            states = transformer(**plain.tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        means = [states[i][0].mean(dim=0) for i in (3, 2, 0)]
        np.testing.assert_allclose(vector, torch.cat([mean / mean.norm() for mean in means]), atol=2e-6)


def test_a_layer_is_read_once(tmp_path) -> None:
    model = with_layer_means(load_encoder(tiny_bert(tmp_path, layers=2), pooling="cls"), [1.0, 0.9, 0.5])
    assert model.get_embedding_dimension() == 2 * 32


def test_an_encoder_without_hidden_layers_is_refused() -> None:
    with pytest.raises(OpencseError, match="no hidden layers"):
        with_layer_means([SimpleNamespace()], [1.0])
