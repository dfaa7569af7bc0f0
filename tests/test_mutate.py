"""The faults of `scripts/mutate.py` fit the code and name tests that exist; the script itself runs them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
assert SPEC is not None
assert SPEC.loader is not None
MUTATE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MUTATE)


ALL = MUTATE.FAULTS | MUTATE.PARITY


@pytest.mark.parametrize("name", ALL)
def test_a_fault_is_one_replacement_and_has_a_test(name: str) -> None:
    fault = ALL[name]
    code = (ROOT / "src" / "opencse" / fault["file"]).read_text(encoding="utf-8")
    assert MUTATE.faulty(code, fault) != code
    file, _, test = fault["test"].partition("::")
    test = test.partition("[")[0]
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
