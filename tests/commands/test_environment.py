"""Variables of the environment with values that nobody foresaw: one line each."""

from __future__ import annotations

import pytest

from opencse.commands.main import check_environment, main, odd_variable
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
    with pytest.raises(OpencseError, match="no launcher said where the processes meet"):
        launched_processes()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert launched_processes() == 1
