"""Rows of frames."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from opencse.foundation.reading import ASSETS
from opencse.text.english.frames import contexts_of, draw_rows, frame_rows, read_frames

FRAME = """kind=condition domain=tickets
A=the stall|the kiosk
+ {A} sells tickets.
+ you get tickets at {A}
- {A} sells no tickets.
- Nobody sells tickets at {A}.
- No tickets at {A}
~ Coffee is sold next door.
x Tickets sell {A}.
q+ tickets at {A}
q- {A} without tickets
"""


@pytest.fixture
def frames(tmp_path: Path):
    (tmp_path / "a.txt").write_text(f"{FRAME}\n\nkind=question domain=x\n+ Who pays?\n+ Whose bill is it?\n", "utf-8")
    return read_frames(tmp_path)


def test_a_frame_has_slots_and_lines_by_mark(frames) -> None:
    first, second = frames
    assert (first.kind, first.slots) == ("condition", {"A": ["the stall", "the kiosk"]})
    assert Counter({mark: len(lines) for mark, lines in first.lines.items()}) == {
        "+": 2, "-": 3, "~": 1, "x": 1, "q+": 1, "q-": 1,
    }  # fmt: skip
    assert second.lines["+"] == ["Who pays?", "Whose bill is it?"]
    assert "Coffee is sold next door." in contexts_of(frames)


def test_rows_hold_one_filling_and_keep_the_sides_apart(frames) -> None:
    found = [row for seed in range(5) for row in frame_rows(frames[0], random.Random(seed), contexts_of(frames))]
    assert {part for part, _ in found} == {"frames", "searches"}
    for part, row in found:
        texts = " ".join(text for column, text in row.items() if "related" not in column).lower()
        assert ("stall" in texts) != ("kiosk" in texts)
        denied = {column: bool(re.search(r"\b(no|nobody|without)\b", text.lower())) for column, text in row.items()}
        for column, value in denied.items():
            if column.startswith(("same", "query_same")):
                assert value is denied["text"], (part, row)
            if column.startswith(("opposed", "query_opposed")):
                assert value is not denied["text"], (part, row)
    assert [part for part, _ in frame_rows(frames[1], random.Random(1), [])] == ["questions"] * 2


def test_the_frames_of_the_package_give_whole_rows_and_the_seed_decides() -> None:
    found = draw_rows(random.Random(1))
    assert len(found) > 30_000
    assert not any(re.search(r"\{[A-D]\}", text) or not text.strip() for row in found for text in row.values())
    assert all(len(set(row.values())) == len(row) for row in found)
    assert found[:100] == draw_rows(random.Random(1))[:100] != draw_rows(random.Random(2))[:100]
    kinds = Counter(frame.kind for frame in read_frames(ASSETS / "frames"))
    assert "passage" not in kinds  # longer than a training text
    assert min(kinds.values()) >= 45
