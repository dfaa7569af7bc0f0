"""Seeds, minutes and sizes: refused, warned of and enough; the page says the same."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch

from opencse import run, train
from opencse.foundation import numbers
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import (
    FEW_SENTENCES,
    LEAST_SENTENCES,
    check_minutes,
    check_seed,
    few_sentences,
)
from opencse.foundation.tensors import move, true_cells
from opencse.losses import Context
from tests.tiny import tiny_bert
from tests.training.helpers import write_corpus


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed) -> None:
    check_seed(0), check_seed(2**32 - 1)
    with pytest.raises(OpencseError, match="out of range"):
        check_seed(seed)


@pytest.mark.parametrize("minutes", [0, -1, math.nan, math.inf])
def test_minutes_that_are_no_limit_are_refused(minutes) -> None:
    check_minutes(0.5)
    with pytest.raises(OpencseError, match="not a time limit"):
        check_minutes(minutes)


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "train.md"


def test_sizes_are_refused_warned_of_and_enough() -> None:
    texts = [f"sentence {i}" for i in range(FEW_SENTENCES)]
    assert few_sentences(texts * 3) == []
    (warning,) = few_sentences(texts[:-1] * 3)
    assert warning.startswith(f"{FEW_SENTENCES - 1} different sentences are few")
    with pytest.raises(
        OpencseError, match=f"{LEAST_SENTENCES - 1} different sentences are too few"
    ):
        few_sentences(texts[: LEAST_SENTENCES - 1] * 100)


def test_train_and_run_refuse_before_they_write_anything(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 7), tiny_bert(tmp_path / "bert")
    for command in (train, run):
        with pytest.raises(OpencseError, match="7 different sentences are too few"):
            command("simcse", corpus, backbone=backbone, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_page_has_the_sizes_of_the_code() -> None:
    section = GUIDE.read_text(encoding="utf-8").split("## Your text")[1].split("\n## ")[0]
    stated = [int(number) for number in re.findall(r"^\|.*?\| (\d+) ", section, re.MULTILINE)]
    assert stated == [value for name, value in vars(numbers).items() if re.match("LEAST|FEW", name)]


META = torch.device("meta")  # its tensors have no values: whatever reads one fails


def test_rows_and_cells_come_from_the_host() -> None:
    present = {
        "a": torch.tensor([True, True, False, True]),
        "b": torch.tensor([True, False, True, True]),
    }
    assert Context().rows(present, "a", "b").tolist() == [0, 3]
    rows = Context(device=META).rows(present, "a")
    assert (rows.device, len(rows)) == (META, 3)
    assert true_cells(
        torch.tensor([[False, True], [True, True]]), torch.device("cpu")
    ).tolist() == [1, 2, 3]
    assert move(torch.zeros(2), META).device == META


def test_a_copy_to_a_gpu_comes_from_pinned_memory(monkeypatch):
    done: list[object] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: (done.append("pinned"), self)[1])
    monkeypatch.setattr(
        torch.Tensor, "to", lambda self, device, **how: (done.append((device, how)), self)[1]
    )
    for name in ("cuda", "cpu"):
        move(torch.zeros(1), torch.device(name))
    assert done == [
        "pinned",
        (torch.device("cuda"), {"non_blocking": True}),
        (torch.device("cpu"), {"non_blocking": True}),
    ]
