from __future__ import annotations

import random

import pytest

from tests.trials.formats import all_formats
from tests.trials.fuzz import fuzz


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return all_formats(tmp_path_factory.mktemp("formats"))


def test_every_reader_reads_its_whole_example(known) -> None:
    for one in known:
        one.read(one.file)
    assert len({one.name for one in known}) == len(known)


def test_no_changed_file_gets_past_its_reader(known, tmp_path) -> None:
    counts, finds = fuzz(known, tmp_path, random.Random(0), until=lambda inputs: inputs >= 300)
    assert len(counts) == len(known), "every format"
    assert not finds
