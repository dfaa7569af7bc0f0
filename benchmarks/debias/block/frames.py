"""Rows from frames, which are claims with slots, each in several wordings, with what contradicts them.

They were written for the meaning block. A file of frames/ holds frames with an empty line between
them. A frame begins with `kind=` and `domain=`; then (in frames of the kind `passage`, each text
but a query has 90 to 160 words):

    A=one filler|another      a slot, written {A} in the lines below
    + …                       the claim, in different words
    - …                       what contradicts every `+` line
    ~ …                       the same topic, but neither
    x …                       something else in nearly the same words: exchanged roles, another
    question
    q+ … / q- …               a short query for `+` or for `-`
    p+ … / p- …               a passage that holds the claim or its opposite; in a frame without
    `-`, another answer
"""

from __future__ import annotations

import collections
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FRAMES = Path(__file__).with_name("frames")
FILLINGS = 14
"""Fillings of the slots that are drawn of a frame."""
PARTS = {"question": "questions", "passage": "passages"}
"""Parts of the rows of some kinds."""
PLAIN = (
    "Please ask the staff for more.",
    "Details are on the web site.",
    "This applies from January on.",
)

Row = dict[str, str]
"""Texts by column, as the recipe `debias` names them."""


@dataclass
class Frame:
    """A claim with slots, in several wordings.

    Attributes:
        kind: What is opposed: `negation`, `quantifier`, `roles`, …; or `question` or `passage`.
        slots: Fillers by the slot's letter.
        lines: Lines with slots, by their mark.
    """

    kind: str
    slots: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))


def read_frames(folder: Path = FRAMES) -> list[Frame]:
    """Return the frames of all files, in order."""
    frames = []
    for path in sorted(folder.glob("*.txt")):
        for part in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            first, *lines = [line.strip() for line in part.strip().split("\n")]
            if not first.startswith("kind="):
                continue
            frame = Frame(first.split()[0].removeprefix("kind="))
            for line in lines:
                if slot := re.match(r"([A-D])=(.*)", line):
                    frame.slots[slot[1]] = [
                        one.strip() for one in slot[2].split("|") if one.strip()
                    ]
                elif text := re.match(r"(q\+|q-|p\+|p-|\+|-|~|x) +(.*)", line):
                    frame.lines[text[1]].append(text[2])
            if frame.lines["+"]:
                frames.append(frame)
    return frames


def frame_rows(frame: Frame, rng: random.Random, contexts: list[str]) -> Iterator[tuple[str, Row]]:
    """Yield rows of a frame, with their part: that of its kind, `frames`, or `searches` where a query stands first.

    Args:
        frame: The frame.
        rng: Draws fillings, wordings and contexts.
        contexts: Sentences that may stand beside a claim in a passage.
    """
    fillings = list(itertools.product(*frame.slots.values()))
    claims, beside = PARTS.get(frame.kind, "frames"), [] if frame.kind == "passage" else contexts
    for filling in rng.sample(fillings, min(len(fillings), FILLINGS)):
        filled = dict(zip(frame.slots, filling, strict=True))
        lines = {mark: [fill(line, filled) for line in some] for mark, some in frame.lines.items()}
        for _ in range(2):
            for part, row in (
                (claims, claim_row(lines, rng)),
                ("searches", search_row(lines, rng, beside)),
            ):
                if row and len(set(row.values())) == len(row):
                    yield part, row


def fill(line: str, filled: dict[str, str]) -> str:
    """Return a line with its slots filled."""
    return re.sub(r"\{([A-D])\}", lambda slot: filled[slot[1]], line)


def claim_row(lines: dict[str, list[str]], rng: random.Random) -> Row:
    """Return a row whose first text is the claim, or what contradicts it."""
    one, other = ("+", "-") if len(lines.get("-", ())) < 3 or rng.random() < 0.6 else ("-", "+")
    same = [sentence(line) if rng.random() < 0.8 else line for line in draw(lines[one], 5, rng)]
    row = {"text": same[0]} | {f"same_{i}": line for i, line in enumerate(same[1:], 1)}
    for i, line in enumerate(draw(lines.get(other, []), 3, rng), 1):
        row[f"opposed_{i}"] = sentence(line)
    for i, line in enumerate(draw(lines.get("x", []), 2, rng), 1):
        row[f"exchanged_{i}"] = sentence(line)
    for i, line in enumerate(draw(lines.get("~", []), 2, rng), 1):
        row[f"related_{i}"] = sentence(line)
    sides = (f"q{one}", "query_same"), (f"q{other}", "query_opposed"), (f"p{one}", "passage_same")
    opposed = "passage_opposed" if lines.get("-") or lines.get("x") else "related_3"
    for mark, column in (*sides, (f"p{other}", opposed)):
        if lines.get(mark):
            row[column] = rng.choice(lines[mark])
    return row


def search_row(lines: dict[str, list[str]], rng: random.Random, contexts: list[str]) -> Row:
    """Return a query with passages that hold the claim, or its opposite, in a context if any; empty without queries."""
    marks = [pair for pair in (("+", "-"), ("-", "+")) if lines.get(f"q{pair[0]}")]
    if not marks or not lines.get("-"):
        return {}
    one, other = rng.choice(marks)
    query, *more = draw(lines[f"q{one}"], 2, rng)
    row = {"text": query} | dict(zip(["query_same"], more, strict=False))
    if lines.get(f"q{other}"):
        row["query_opposed"] = rng.choice(lines[f"q{other}"])
    beside = [*map(sentence, lines.get("~", ())), *rng.sample(contexts, 2)] if contexts else []
    for i, (right, wrong) in enumerate(
        zip(draw(lines[one], 3, rng), draw(lines[other], 3, rng), strict=False), 1
    ):
        before, behind = rng.choice(
            [(0, 0), (1, 0), (1, 0), (0, 1), (0, 1), (1, 1)] if beside else [(0, 0)]
        )
        context = rng.sample(beside, before + behind)
        for column, line in ((f"same_{i}", right), (f"opposed_{i}", wrong)):
            row[column] = " ".join([*context[:before], ended(sentence(line)), *context[before:]])
    return row


def draw(lines: list[str], most: int, rng: random.Random) -> list[str]:
    """Return some of the lines in random order."""
    return rng.sample(lines, min(most, len(lines)))


def sentence(line: str) -> str:
    """Return a line with a capital."""
    return line[:1].upper() + line[1:]


def ended(line: str) -> str:
    """Return a line with a full stop, if it has no mark at its end."""
    return line if line[-1] in ".?!" else f"{line}."


def contexts_of(frames: list[Frame]) -> list[str]:
    """Return related sentences without slots: they may stand beside anything."""
    lines = [line for frame in frames if frame.kind != "passage" for line in frame.lines["~"]]
    return [*PLAIN, *(ended(line) for line in lines if "{" not in line)]
