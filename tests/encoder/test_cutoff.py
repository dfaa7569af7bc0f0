from __future__ import annotations

import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.cutoff import embedding_cutoff, kept_cells
from opencse.encoder.packing import prepare_for_training
from opencse.foundation.draws import RowDraws
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert

MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
DRAWS = RowDraws.of([4, 9])


@pytest.mark.parametrize(
    ("kind", "zeros"), [("token", [2 * 10, 0]), ("feature", [4 * 5, 4 * 5]), ("cell", [20, 8])]
)
def test_the_share_of_each_sentence_is_cut_off(kind: str, zeros: list[int]) -> None:
    keep = kept_cells(MASK, 10, kind, 0.4, DRAWS).expand(2, 5, 10)
    assert [int((~rows).sum()) for rows in keep] == zeros
    if kind != "feature":  # padding is never what is cut off
        assert keep[1, 2:].all()


@pytest.mark.parametrize("kind", ["token", "feature", "cell"])
def test_a_sentence_is_cut_alike_in_any_batch(kind: str) -> None:
    together = kept_cells(MASK, 10, kind, 0.6, DRAWS).expand(2, 5, 10)
    alone = kept_cells(MASK[1:, :2], 10, kind, 0.6, DRAWS[1:]).expand(1, 2, 10)
    assert torch.equal(together[1, :2], alone[0])


def test_features_are_the_same_for_all_tokens() -> None:
    keep = kept_cells(MASK, 10, "feature", 0.4, DRAWS).expand(2, 5, 10)
    assert (keep[0] == keep[0, :1]).all()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return load_encoder(tiny_bert(tmp_path_factory.mktemp("bert")), pooling="mean", device="cpu")


def test_padded_and_packed_batches_are_cut_alike(encoder) -> None:
    batch = encoder.tokenizer(
        ["the cat sat in the car", "a dog"], padding=True, return_tensors="pt"
    )
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    results = []
    for packed in (False, True):
        if packed:
            assert prepare_for_training(encoder)
        encoder.train()
        with embedding_cutoff(encoder, inputs["attention_mask"], None, "feature", 0.5, DRAWS):
            results.append(encoder(dict(inputs))["sentence_embedding"])
    untouched = encoder(dict(inputs))["sentence_embedding"]
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(results[0], untouched, atol=1e-3)


def test_an_encoder_without_an_embedding_layer_is_refused() -> None:
    encoder = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with (
        pytest.raises(OpencseError, match="no embedding layer"),
        embedding_cutoff(encoder, MASK, None, "token", 0.1),
    ):
        pass
