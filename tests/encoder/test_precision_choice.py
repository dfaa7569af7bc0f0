"""`precision = "auto"`: bf16 where the processor has instructions for it and the model is large enough, else fp32."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, DistilBertConfig

from opencse.encoder.device import describe, resolve_precision
from opencse.encoder.embedder import Embedder

WIDE, SMALL = {"hidden_size": 384}, {"hidden_size": 32}


def machine(monkeypatch, *capabilities):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(capabilities, True))


@pytest.mark.parametrize(
    ("capabilities", "config", "expected"),
    [
        (["avx512_bf16"], WIDE, "bf16"),
        (["amx_bf16", "avx2"], BertConfig(hidden_size=768), "bf16"),
        (["sve_bf16"], DistilBertConfig(dim=768), "bf16"),
        (["avx512_bf16"], SMALL, "fp32"),
        (["avx512_bf16"], DistilBertConfig(dim=64, n_heads=4), "fp32"),
        (["avx512_f"], WIDE, "fp32"),
        (["avx512_bf16"], {}, "bf16"),
    ],
)
def test_the_processor_and_the_width_decide(monkeypatch, capabilities, config, expected):
    machine(monkeypatch, *capabilities)
    assert resolve_precision("auto", config, "cpu") == expected
    assert describe("auto", config, torch.device("cpu")).endswith(f"{expected} (the faster one here)")


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp32")])
def test_an_accelerator_is_asked(monkeypatch, supported, expected):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert resolve_precision("auto", SMALL, "cuda") == expected


def test_what_was_asked_for_is_taken():
    assert resolve_precision("fp32", WIDE, "cpu") == "fp32"
    assert resolve_precision("fp16", {}, "cuda") == "fp16"


@pytest.mark.parametrize("expected", ["bf16", "fp32"])
def test_an_embedder_says_which_it_took(monkeypatch, tiny_model, expected):
    monkeypatch.setattr("opencse.encoder.device._LEAST_WIDTH", {"bf16": 1, "fp32": 64}[expected])
    machine(monkeypatch, "avx512_bf16")
    embedder = Embedder(tiny_model, precision="auto")
    assert embedder.precision == expected
    same = Embedder(tiny_model, precision=expected)
    np.testing.assert_array_equal(embedder.encode(["a cat sits"]), same.encode(["a cat sits"]))
