"""`precision = "auto"`: bf16 where it multiplies faster, fp32 elsewhere, asked once per machine."""

import json

import numpy as np
import pytest
import torch

from opencse.encoder import precision
from opencse.encoder.embedder import Embedder
from opencse.encoder.precision import PrecisionChoice, choose_precision, matrix_widths, resolve_precision


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path))


def machine(monkeypatch, ratio):
    """A machine on which bf16 takes `ratio` times as long as fp32; returns the list of probes."""
    probes = []
    monkeypatch.setattr(precision, "bf16_time_ratio", lambda *widths: probes.append(widths) or ratio)
    return probes


@pytest.mark.parametrize(("ratio", "expected"), [(0.42, "bf16"), (0.95, "fp32"), (1.56, "fp32"), (90.0, "fp32")])
def test_the_faster_precision_is_chosen_and_a_tie_goes_to_fp32(monkeypatch, ratio, expected):
    machine(monkeypatch, ratio)
    assert choose_precision({}, "cpu") == PrecisionChoice(expected, ratio)


def test_a_machine_is_probed_once_for_a_models_shapes(monkeypatch, tmp_path):
    probes = machine(monkeypatch, 0.5)
    small, large = {"hidden_size": 384, "intermediate_size": 1536}, {"hidden_size": 768, "intermediate_size": 3072}
    for config in (small, large, small):
        choose_precision(config, "cpu")
    assert probes == [(384, 1536), (768, 3072)]
    kept = [json.loads(path.read_text()) for path in (tmp_path / "precision").iterdir()]
    assert sorted(one["width"] for one in kept) == [384, 768]
    assert all(one["torch"] == torch.__version__ for one in kept)


def test_another_processor_is_probed_anew(monkeypatch):
    probes = machine(monkeypatch, 0.5)
    choose_precision({}, "cpu")
    monkeypatch.setattr(precision, "processor_id", lambda: "another")
    choose_precision({}, "cpu")
    assert len(probes) == 2


def test_a_damaged_or_read_only_cache_costs_a_probe_and_nothing_else(monkeypatch, tmp_path):
    probes = machine(monkeypatch, 0.5)
    choose_precision({}, "cpu")
    (path,) = (tmp_path / "precision").iterdir()
    path.write_text("{")
    assert choose_precision({}, "cpu").precision == "bf16"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "file"))
    assert choose_precision({}, "cpu").precision == "bf16"
    assert len(probes) == 3


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp32")])
def test_an_accelerator_is_asked_not_timed(monkeypatch, supported, expected):
    probes = machine(monkeypatch, 0.5)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert choose_precision({}, "cuda").precision == expected
    assert not probes


def test_what_was_asked_for_is_taken(monkeypatch):
    probes = machine(monkeypatch, 0.5)
    assert resolve_precision("fp32", {}, "cpu") == "fp32"
    assert resolve_precision("fp16", {}, "cuda") == "fp16"
    assert not probes
    assert resolve_precision("auto", {}, "cpu") == "bf16"


def test_the_probe_is_short_and_leaves_the_threads_alone():
    before = torch.get_num_threads()
    assert precision.bf16_time_ratio(64, 128) > 0
    assert torch.get_num_threads() == before


def test_a_processor_without_bf16_is_not_probed_for_long(monkeypatch):
    tokens = []

    def seconds(pairs):
        inputs, _ = pairs[0]
        tokens.append(len(inputs))
        return 0.2 if inputs.dtype == torch.bfloat16 else 0.001

    monkeypatch.setattr(precision, "_seconds", seconds)
    assert precision.bf16_time_ratio(64, 128) == pytest.approx(200)
    assert set(tokens) == {16}  # the larger products were never tried


def test_widths_come_from_any_familys_configuration():
    from transformers import BertConfig, DistilBertConfig

    assert matrix_widths(BertConfig(hidden_size=32, intermediate_size=48)) == (32, 48)
    assert matrix_widths(DistilBertConfig(dim=32, hidden_dim=96, n_heads=4).to_dict()) == (32, 96)
    assert matrix_widths({"hidden_size": 100}) == (100, 400)


@pytest.mark.parametrize(("ratio", "expected"), [(0.4, "bf16"), (1.6, "fp32")])
def test_an_embedder_says_which_it_took(monkeypatch, tiny_model, ratio, expected):
    machine(monkeypatch, ratio)
    embedder = Embedder(tiny_model, precision="auto")
    assert embedder.precision == expected
    same = Embedder(tiny_model, precision=expected)
    np.testing.assert_array_equal(embedder.encode(["a cat sits"]), same.encode(["a cat sits"]))
