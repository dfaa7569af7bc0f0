import pytest

from opencse.debias import strength
from opencse.evaluation import estimate
from tests.evaluation.conftest import some_pairs as some_pairs


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few resamples and strengths: how many there are is nobody's concern here."""
    monkeypatch.setattr(estimate, "_RESAMPLES", 100)
    monkeypatch.setattr(strength, "STRENGTHS", (0.0, 0.3, 0.6))
