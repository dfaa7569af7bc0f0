"""Sizes below which training is refused or warned of, and nothing is claimed: one place, and the page says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opencse import OpencseError, run, train
from opencse.foundation import numbers
from opencse.foundation.numbers import FEW_SENTENCES, LEAST_SENTENCES, few_sentences
from tests.tiny import tiny_bert
from tests.training.helpers import write_corpus

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "train.md"


def test_sizes_are_refused_warned_of_and_enough() -> None:
    texts = [f"sentence {i}" for i in range(FEW_SENTENCES)]
    assert few_sentences(texts * 3) == []
    (warning,) = few_sentences(texts[:-1] * 3)
    assert warning.startswith(f"{FEW_SENTENCES - 1} different sentences are few")
    with pytest.raises(OpencseError, match=f"{LEAST_SENTENCES - 1} different sentences are too few"):
        few_sentences(texts[: LEAST_SENTENCES - 1] * 100)


def test_train_and_run_refuse_before_they_write_anything(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 7), tiny_bert(tmp_path / "bert")
    for command in (train, run):
        with pytest.raises(OpencseError, match="7 different sentences are too few"):
            command("simcse", corpus, backbone=backbone, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_page_has_the_sizes_of_the_code() -> None:
    section = GUIDE.read_text(encoding="utf-8").split("## How much text")[1].split("\n## ")[0]
    stated = [int(number) for number in re.findall(r"^\|.*?\| (\d+) ", section, re.MULTILINE)]
    assert stated == [value for name, value in vars(numbers).items() if re.match("LEAST|FEW", name)]
