"""Texts of elsewhere that nothing written for this project may repeat."""

import gzip
import os
import re
from pathlib import Path

import pytest


def normalised(text):
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def known_data_files():
    """Every file of data sets and corpora on this machine; skips the test where there is none."""
    named = os.environ.get("OPENCSE_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    found = sorted(folder.glob("eval/*/*.tsv.gz")) + sorted(folder.glob("corpus/*head*.txt.gz"))
    if not found:
        pytest.skip("no real data: set OPENCSE_DATA to the folder that holds eval/")
    return found


def repeated_in(path, texts):
    """Those of our texts that are a cell of this file, but for case and punctuation."""
    ours = {normalised(text) for text in texts}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        cells = {normalised(cell) for line in stream for cell in line.rstrip("\n").split("\t")}
    return ours & cells
