"""Variables of the environment with values that nobody foresaw: one line each."""

from __future__ import annotations

import os

import pytest

from opencse.commands.main import check_environment, main, odd_variable
from opencse.encoder.device import choose_device
from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import launched_processes


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30, "", "²"])
def test_a_point_of_time_that_is_none(monkeypatch, capfd, value) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with pytest.raises(OpencseError, match="SOURCE_DATE_EPOCH is"):
        check_environment()
    monkeypatch.setattr("sys.argv", ["opencse", "recipes"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capfd.readouterr().err.startswith("opencse: SOURCE_DATE_EPOCH")


def test_a_value_that_a_library_cannot_use_is_named(monkeypatch) -> None:
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "many")
    from accelerate import Accelerator

    with pytest.raises(ValueError, match="many") as raised:
        Accelerator()
    found = odd_variable(raised.value)
    assert found is not None
    assert "ACCELERATE_GRADIENT_ACCUMULATION_STEPS has the value 'many'" in found.problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ACCELERATE_USE_DEEPSPEED", "true"),
        ("ACCELERATE_USE_MEGATRON_LM", "1"),
        ("ACCELERATE_TORCH_DEVICE", "meta"),
        ("_OPENCSE_COMPLETE", "complete_bash"),
    ],
)
def test_values_that_ask_for_something_that_is_not_there(monkeypatch, name, value) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(OpencseError, match=name):
        check_environment()


def test_a_device_that_this_machine_lacks(monkeypatch) -> None:
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", "cuda:99")
    with pytest.raises(OpencseError, match="ACCELERATE_TORCH_DEVICE is 'cuda:99'"):
        choose_device()


def test_an_empty_variable_of_accelerate_is_none(monkeypatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_CPU", " ")
    check_environment()
    assert "ACCELERATE_USE_CPU" not in os.environ


def test_other_errors_are_no_matter_of_variables() -> None:
    assert odd_variable(ValueError("a defect")) is None


@pytest.mark.parametrize(
    ("address", "port"),
    [("", "29500"), ("127.0.0.1", ""), ("127.0.0.1", "x"), ("127.0.0.1", "70000"), ("", "")],
)
def test_variables_of_a_launcher_without_a_launcher(monkeypatch, address, port) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_ADDR", address)
    monkeypatch.setenv("MASTER_PORT", port)
    with pytest.raises(OpencseError, match="no launcher set where the processes meet"):
        launched_processes()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert launched_processes() == 1
