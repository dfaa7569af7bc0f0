from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from opencse import build
from opencse.encoder import load_encoder
from opencse.foundation.numbers import unit_rows
from opencse.text.views.registry import CandidateTable, HardNegatives, build_views
from tests.text.mined.helpers import key, vectors


def mine(corpus: Path, out: Path, model: str, **options) -> list[dict]:
    specs = {"negative": HardNegatives(model=model, precision="fp32", **options)}
    return pq.read_table(build_views(corpus, specs, out)).to_pylist()


def ranked(matrix: np.ndarray, lines: list[str], row: int) -> list[int]:
    """All other sentences, nearest first; of copies the one that comes first in the corpus."""
    seen, out = {key(lines[row])}, []
    for j, text in enumerate(lines):
        if key(text) not in seen:
            seen.add(key(text))
            out.append(j)
    cosine = matrix[out] @ matrix[row]
    return [out[k] for k in np.argsort(-cosine, kind="stable")]


def drawn(row: dict, count: int) -> list[int]:
    rules = [row[f"negative_{k + 1}.rule"] for k in range(count)]
    return [int(rule.removeprefix("row ")) for rule in rules if rule.startswith("row ")]


def test_top(corpus, lines, encoder, tmp_path):
    rows, matrix = mine(corpus, tmp_path / "v", encoder, count=3), vectors(encoder, lines)
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        expected = cosine[ranked(matrix, lines, i)[:3]]
        np.testing.assert_allclose(cosine[drawn(rows[i], 3)], expected, atol=1e-6)
        assert key(rows[i]["negative_1"]) != key(lines[i])


def test_ranks_window_and_chance(corpus, lines, encoder, tmp_path):
    matrix = vectors(encoder, lines)
    options = {"ranks": (5, 20), "window": (0.3, 0.7)}
    top = mine(corpus, tmp_path / "top", encoder, **options)
    random_pick = mine(corpus, tmp_path / "random", encoder, pick="random", **options)
    used = set()
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        window = [j for j in ranked(matrix, lines, i) if 0.3 <= cosine[j] <= 0.7][5:20]
        assert top[i]["negative_1.candidates"] == len(window)
        np.testing.assert_allclose(cosine[drawn(top[i], 2)], cosine[window[:2]], atol=1e-6)
        assert set(drawn(random_pick[i], 2)) <= set(window)
        used |= {window.index(j) for j in drawn(random_pick[i], 2)}
    assert len(used) >= 10


@pytest.fixture
def positives(lines, tmp_path) -> dict[int, str]:
    """A positive of every other sentence, in a table: the same words but one."""
    found = {i: " ".join(lines[i].split()[:-1]) for i in range(0, 700, 2) if i not in (3, 10)}
    rows = (f"{lines[i]}\t{text}" for i, text in found.items())
    (tmp_path / "positives.tsv").write_text("\n".join(["text\tcandidate", *rows]))
    return found


def mine_below(corpus, lines, encoder, tmp_path, **options) -> list[dict]:
    specs = {
        "positive": CandidateTable(path=str(tmp_path / "positives.tsv"), window=(0.0, 1.0)),
        "negative": HardNegatives(model=encoder, precision="fp32", positive="positive", **options),
    }
    return pq.read_table(build_views(corpus, specs, tmp_path / "views")).to_pylist()


def test_what_is_nearly_as_near_as_the_positive_is_skipped(corpus, lines, encoder, positives, tmp_path) -> None:
    rows = mine_below(corpus, lines, encoder, tmp_path, max_ratio=0.95, count=3, window=(-1.0, 0.99))
    matrix = vectors(encoder, lines)
    model, skipped = load_encoder(encoder), 0
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        allowed = [j for j in ranked(matrix, lines, i) if cosine[j] <= 0.99]
        if i in positives:
            assert rows[i]["positive"] == positives[i]
            limit = 0.95 * float(unit_rows(model.encode([positives[i]]))[0] @ matrix[i])
            below = [j for j in allowed if cosine[j] <= limit]
            assert rows[i]["negative_1.skipped"] == len(allowed) - len(below)
            skipped += len(allowed) - len(below)
            allowed = below
        else:  # no positive, no limit
            assert rows[i]["negative_1.skipped"] == 0
        np.testing.assert_allclose(cosine[drawn(rows[i], 3)], cosine[allowed[:3]], atol=1e-6)
    assert skipped > 20


def test_the_run_says_how_many_were_skipped(corpus, lines, encoder, positives, tmp_path) -> None:
    (tmp_path / "mined.toml").write_text(f"""
extends = "simcse"
[build.positive]
kind = "candidate_table"
path = "{tmp_path / "positives.tsv"}"
window = [0.0, 1.0]
[build.negative]
kind = "hard_negatives"
model = "{encoder}"
count = 1
positive = "positive"
max_ratio = 0.95
""")
    notes: list[str] = []
    built = build(
        str(tmp_path / "mined.toml"), str(corpus), backbone=encoder, out=tmp_path / "out", notify=notes.append
    )
    counts = pq.read_table(built)["negative_1.skipped"].to_numpy()
    assert counts.sum() > 100
    said = (
        f"negative: {counts.sum():,} candidates of {(counts > 0).sum():,} sentences skipped as likely false negatives"
    )
    assert any(said in note for note in notes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_ratio": 0.9}, "go together"),
        ({"positive": "p"}, "go together"),
        ({"positive": "p", "max_ratio": 1.5}, "up to 1"),
    ],
)
def test_a_ratio_needs_a_positive(options, match) -> None:
    with pytest.raises(ValueError, match=match):
        HardNegatives(model="m", **options)


def test_impossible_values():
    with pytest.raises(ValueError, match="range that holds at least"):
        HardNegatives(model="m", ranks=(3, 4))
    with pytest.raises(ValueError, match="block must be at least 1"):
        HardNegatives(model="m", block=0)
