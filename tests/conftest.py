from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that calls a hub fails
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # two workers with two threads each wait for each other on two cores


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _remarks_are_shown() -> None:
    """Undo what a command of an earlier test said about remarks, such as `--quiet`."""
    import logging

    from opencse.foundation.progress import LOG, set_quiet

    set_quiet(False)
    LOG.setLevel(logging.INFO)
    LOG.disabled = False


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Real data, which is not part of the project: `$OPENCSE_DATA`, or `shared/data` beside the checkout."""
    found = (
        os.environ.get("OPENCSE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    )
    if not (Path(found) / "eval").is_dir():
        pytest.skip("no real data: set OPENCSE_DATA to a folder that has eval/")
    return Path(found)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    """A tiny random sentence encoder."""
    from sentence_transformers import SentenceTransformer

    from tests.tiny import tiny_bert

    return SentenceTransformer(str(tiny_bert(tmp_path_factory.mktemp("bert"))), device="cpu")
