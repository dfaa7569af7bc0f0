from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import tiny_bert


@pytest.fixture(scope="session")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))
