from __future__ import annotations

import math

import pytest
import torch

from opencse.encoder.flow import SentenceFlow, fit_flow


def cone(count: int = 512, width: int = 8) -> torch.Tensor:
    """Vectors in a narrow cone, with scales that differ a thousandfold, as those of BERT."""
    generator = torch.Generator().manual_seed(0)
    scales = torch.logspace(-2, 1, width)
    return 5.0 + scales * torch.randn(count, width, generator=generator)


def trained_like() -> SentenceFlow:
    """A flow whose couplings and splits do something."""
    flow = SentenceFlow(8, levels=2, depth=2, hidden=4)
    torch.manual_seed(1)
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return flow.double()


def test_the_determinant_is_that_of_the_jacobian() -> None:
    flow = trained_like()
    vector = torch.randn(1, 8, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: flow.image(x)[0], vector)
    expected = torch.linalg.slogdet(jacobian[0, :, 0]).logabsdet
    torch.testing.assert_close(flow.image(vector)[1][0], expected)


def test_bits_are_the_negative_log_likelihood() -> None:
    flow = trained_like()
    vectors = torch.randn(5, 8, dtype=torch.float64)
    images, change = flow.image(vectors)
    normal = torch.distributions.Normal(0.0, 1.0).log_prob(images).sum(dim=1)
    expected = -(normal + change).mean() / (8 * math.log(2))
    torch.testing.assert_close(flow.bits(vectors), expected)


def test_different_vectors_have_different_images() -> None:
    flow = trained_like()
    images, _ = flow.image(torch.randn(200, 8, dtype=torch.float64))
    assert torch.pdist(images).min() > 1e-6


def test_training_makes_the_corpus_normal() -> None:
    vectors = cone()
    flow = fit_flow(vectors, epochs=20, levels=2, depth=2, hidden=8)
    images, _ = flow.image(vectors)
    assert images.mean(dim=0).abs().max() < 0.3
    assert (images.std(dim=0) - 1).abs().max() < 0.3
    first = torch.nn.functional.normalize(vectors, dim=1)
    last = torch.nn.functional.normalize(images, dim=1)
    assert (first @ first.T).mean() > 0.6  # a narrow cone
    assert (last @ last.T).mean() < 0.1


def test_a_seed_gives_the_same_flow_and_leaves_the_random_state() -> None:
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    flows = [fit_flow(cone(64), levels=1, depth=1, hidden=4, seed=5) for _ in range(2)]
    assert torch.equal(torch.random.get_rng_state(), state)
    for one, two in zip(flows[0].parameters(), flows[1].parameters(), strict=True):
        assert torch.equal(one, two)


def test_it_is_saved_and_read(tmp_path) -> None:
    flow = fit_flow(cone(64), levels=2, depth=1, hidden=4)
    folder = tmp_path / "2_SentenceFlow"
    folder.mkdir()
    flow.save(str(folder))
    features = {"sentence_embedding": cone(5)}
    again = SentenceFlow.load(str(folder))
    assert torch.equal(again(features)["sentence_embedding"], flow(features)["sentence_embedding"])
    assert "import opencse" not in (tmp_path / "flow.py").read_text()


def test_the_width_must_be_divisible() -> None:
    with pytest.raises(ValueError, match="cannot be halved 3 times"):
        SentenceFlow(12)
