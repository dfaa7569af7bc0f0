from __future__ import annotations

from pathlib import Path

import pytest

from tests.text.mined.helpers import made_up, saved_encoder


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return made_up(700)


@pytest.fixture(scope="session")
def corpus(lines, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join([*lines[:5], "", "  ", *lines[5:]]) + "\n")
    return path


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    return saved_encoder(tmp_path_factory.mktemp("encoder"))
