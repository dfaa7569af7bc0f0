from __future__ import annotations

import json

import numpy as np
import pytest

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.flow import SentenceFlow
from opencse.encoder.vector_maps import add_flow, add_whitening, fit_whitening
from opencse.foundation.errors import OpencseError
from tests.tiny import WORDS, tiny_bert

SENTENCES = [f"{one} {other}" for one in WORDS[:12] for other in WORDS[:12]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_bert(tmp_path_factory.mktemp("bert"), layers=1)
    return load_encoder(folder, pooling="mean").eval()


def test_whitening_equals_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + 100 * rng.normal(size=6)
    _, s, components = np.linalg.svd(np.cov(vectors.T))
    expected = (vectors - vectors.mean(axis=0)) @ (components.T / np.sqrt(s))

    dense = fit_whitening([vectors[:300], vectors[300:]]).double()
    weight = dense.linear.weight.detach().numpy()
    actual = vectors @ weight.T + dense.linear.bias.detach().numpy()
    assert np.abs(np.abs(actual) - np.abs(expected)).max() < 1e-3  # eigenvectors have no sign


def test_whitening_needs_more_sentences_than_numbers(encoder) -> None:
    with pytest.raises(OpencseError, match="given 32 sentences"):
        add_whitening(encoder, SENTENCES[:32])


def test_whitened_vectors_have_mean_0_and_covariance_1(encoder) -> None:
    model = add_whitening(encoder, iter(SENTENCES), precision="fp32")
    vectors = model.encode(SENTENCES)
    assert np.abs(vectors.mean(axis=0)).max() < 1e-3
    expected = np.eye(32)
    expected[-1, -1] = 0.0  # the layer normalisation leaves 31 directions
    assert np.abs(np.cov(vectors.T) - expected).max() < 1e-2


def test_a_flow_maps_the_vectors_of_the_model(encoder) -> None:
    model = add_flow(encoder, iter(SENTENCES), epochs=2, precision="fp32")
    flow = model[-1]
    assert isinstance(flow, SentenceFlow)
    before = encoder.encode(SENTENCES[:5], convert_to_tensor=True)
    expected, _ = flow.image(before)
    np.testing.assert_allclose(
        model.encode(SENTENCES[:5]), expected.detach().numpy(), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("add", [add_whitening, add_flow])
def test_the_map_is_saved_with_the_model(tmp_path, encoder, add) -> None:
    model = add(encoder, SENTENCES)
    folder = tmp_path / "model"
    save_encoder(model, folder)
    again = load_encoder(folder)
    np.testing.assert_allclose(again.encode(SENTENCES[:5]), model.encode(SENTENCES[:5]), atol=1e-5)


def test_a_saved_flow_needs_no_opencse(tmp_path, encoder) -> None:
    from sentence_transformers import SentenceTransformer

    model = add_flow(encoder, SENTENCES)
    folder = tmp_path / "model"
    save_encoder(model, folder)
    modules = json.loads((folder / "modules.json").read_text())
    assert modules[-1]["type"] == "flow.SentenceFlow"
    again = SentenceTransformer(str(folder), trust_remote_code=True)
    assert type(again[-1]).__module__ != "opencse.encoder.flow"
    np.testing.assert_allclose(again.encode(SENTENCES[:5]), model.encode(SENTENCES[:5]), atol=1e-5)


def test_a_truncated_model_is_mapped_as_a_whole(encoder) -> None:
    with encoder.truncate_embeddings(8):
        model = add_flow(encoder, SENTENCES)
        assert model.encode("a dog").shape == (8,)
    assert model[-1].config["width"] == 32


def test_a_flow_says_which_vectors_it_cannot_halve(tmp_path) -> None:
    odd = load_encoder(tiny_bert(tmp_path, layers=1, width=36), pooling="mean")
    with pytest.raises(OpencseError, match="cannot be halved"):
        add_flow(odd, SENTENCES)
