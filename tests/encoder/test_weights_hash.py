from __future__ import annotations

import copy

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer, WeightedLayerPooling

from opencse.encoder.backbone import pooling_name, weights_hash
from tests.tiny import tiny_bert


def test_survives_use_saving_and_the_random_head(tiny_model, tmp_path):
    before = weights_hash(tiny_model)
    tiny_model.encode(["a dog", "the cat sits on the house"])  # the tokenizer now remembers truncation and padding
    assert weights_hash(tiny_model) == before
    tiny_model.save(str(tmp_path / "saved"))
    assert weights_hash(SentenceTransformer(str(tmp_path / "saved"), device="cpu")) == before
    folder = tiny_bert(tmp_path / "bert")  # has no pooler: every load draws another
    hashes = {weights_hash(SentenceTransformer(str(folder), device="cpu")) for _ in range(2)}
    assert hashes == {before}


@pytest.mark.parametrize("change", ["weight", "pooling", "length", "prompt", "vocabulary", "dtype", "width"])
def test_sees_every_change(tiny_model, change):
    before = weights_hash(tiny_model)
    model = copy.deepcopy(tiny_model)
    match change:
        case "weight":
            with torch.no_grad():
                next(model.parameters())[3, 3] += 1e-3
        case "pooling":
            model[1].pooling_mode = "cls"
        case "length":
            model.max_seq_length = 9
        case "prompt":
            model.prompts["q"] = "query: "
        case "vocabulary":
            model.tokenizer.add_tokens(["zebra"])
        case "dtype":
            model.half()
        case "width":
            model.truncate_dim = 8
    assert weights_hash(model) != before


def test_pooling_names(tiny_model, tmp_path):
    assert pooling_name(tiny_model) == "mean"
    transformer = Transformer(str(tiny_bert(tmp_path)), config_kwargs={"output_hidden_states": True})
    layers = WeightedLayerPooling(32, num_hidden_layers=2, layer_start=0)
    assert pooling_name(SentenceTransformer(modules=[transformer, layers, Pooling(32, "mean")])) == "layers+mean"
    assert pooling_name(SentenceTransformer(modules=[transformer, Pooling(32, ("mean", "cls"))])) == "mean+cls"
