"""One device for everything: accelerate's, or the one that is named."""

import os

import pytest
import torch
from accelerate import PartialState

from opencse.encoder.device import choose_device, device_name, use_device, world_size
from opencse.foundation.errors import OpencseError

VARIABLES = ("ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU", "LOCAL_RANK")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
        monkeypatch.delenv(name)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some GPU")


def test_by_default_it_is_the_one_that_accelerate_trains_on():
    from accelerate import Accelerator

    assert choose_device() == Accelerator().device
    assert "thread" in device_name(torch.device("cpu"))


def test_an_accelerator_is_found_and_each_of_several_processes_has_its_own(two_gpus, monkeypatch):
    assert choose_device() == torch.device("cuda")
    assert device_name(choose_device()) == "cuda (Some GPU)"
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device() == torch.device("cuda", 1)
    use_device("cuda")
    assert choose_device() == torch.device("cuda", 1)


def test_a_named_device_becomes_the_choice_of_everything(two_gpus):
    assert use_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device() == torch.device("cuda", 1)
    assert os.environ["ACCELERATE_TORCH_DEVICE"] == "cuda:1"
    assert use_device("cpu") == torch.device("cpu")
    assert choose_device() == torch.device("cpu")


def test_a_model_is_loaded_onto_it(tmp_path):
    from opencse.encoder import load_encoder
    from tests.tiny import tiny_bert

    folder = tiny_bert(tmp_path)
    use_device("meta")
    assert load_encoder(folder, pooling="mean").device.type == "meta"
    assert load_encoder(folder, pooling="mean", device="cpu").device.type == "cpu"


@pytest.mark.parametrize(("name", "problem"), [("gpu", "no such kind"), ("cuda", "finds no such device")])
def test_a_device_that_is_not_there_is_one_line(name, problem):
    with pytest.raises(OpencseError, match=problem):
        use_device(name)


def test_a_number_too_high_is_one_line(two_gpus):
    with pytest.raises(OpencseError, match="there are only 2"):
        use_device("cuda:2")


def test_worlds_that_disagree_are_refused(monkeypatch):
    PartialState()
    assert world_size() == 1
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(OpencseError, match=r"PyTorch sees 2 processes, but accelerate, .* 1\."):
        world_size()
