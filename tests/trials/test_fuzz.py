from __future__ import annotations

import random

from tests.trials.fuzz import fuzz


def test_no_changed_file_gets_past_its_reader(tmp_path) -> None:
    counts, finds = fuzz(tmp_path, random.Random(0), until=lambda inputs: inputs >= 250)
    assert len(counts) == 13, "every format"
    assert not finds
