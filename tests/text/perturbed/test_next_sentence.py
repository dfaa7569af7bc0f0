from __future__ import annotations

import pyarrow.parquet as pq

from opencse.text.views.registry import NextSentence, build_views


def test_each_sentence_has_the_one_that_follows_and_the_last_has_none(tmp_path):
    (tmp_path / "corpus.txt").write_text("One.\nTwo.\n\nThree.\nFour.\nFive.\n")
    out = build_views(
        tmp_path / "corpus.txt", {"next": NextSentence()}, tmp_path / "out", rows_per_part=2, progress=False
    )
    table = [row for part in sorted(out.glob("part-*")) for row in pq.read_table(part).to_pylist()]
    assert [row["next"] for row in table] == ["Two.", "Three.", "Four.", "Five.", None]
    assert [row["next.rule"] for row in table][-2:] == ["row 4", "last row"]
