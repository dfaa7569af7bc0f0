"""`opencse pretrain` as a user meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opencse.cli.main import main
from tests.pretraining.helpers import SENTENCES, SMALL, write_corpus
from tests.tiny import tiny_bert

SETTINGS = [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture
def opencse(monkeypatch, capfd):
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["opencse", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed, notes = capfd.readouterr()
        return int(stopped.value.code or 0), printed, notes

    return call


def test_a_new_model_is_a_backbone(tmp_path: Path, opencse) -> None:
    half = len(SENTENCES) // 2
    parts = [write_corpus(tmp_path / name, part) for name, part in (("a", SENTENCES[:half]), ("b", SENTENCES[half:]))]
    out = str(tmp_path / "out")
    code, printed, notes = opencse("pretrain", *map(str, parts), "-o", out, *SETTINGS, "--seed", "3")
    assert code == 0, notes
    assert "10 steps" in printed
    assert "accuracy on held-out masked tokens" in printed
    assert "learning the vocabulary" in notes
    more = ["--set", "training.max_steps=2", "--set", "training.batch_size=4", "--set", "encoder.max_length=16"]
    code, printed, notes = opencse("train", "simcse", str(parts[0]), "--backbone", out, "-o", out + "2", *more)
    assert code == 0, notes


BAD = {
    "missing corpus": (["none.txt"], "none.txt: no such file"),
    "second corpus missing": (["CORPUS", "none.txt"], "none.txt: no such file"),
    "unknown settings": (["CORPUS", "--settings", "mini"], "unknown settings 'mini'"),
    "unknown key": (["CORPUS", "--set", "masking.rat=0.1"], "unknown key 'rat'"),
    "impossible value": (["CORPUS", "--set", "masking.rate=1.5"], "rate must be above 0 and below 1"),
    "not a number": (["CORPUS", "--set", "optimizer.lr=fast"], "expected a number"),
    "too little text": (["CORPUS", "--set", "vocabulary.size=5000"], "word pieces, not vocabulary.size = 5000"),
    "positions": (["CORPUS", "--set", "text.max_length=64"], "text.max_length is 64"),
    "unknown backbone": (["CORPUS", "--backbone", "./none"], "no such model folder"),
    "no run to resume": (["CORPUS", "--resume"], "holds no run to resume"),
    "no corpus": ([], "See `opencse pretrain --help`"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, opencse, name: str) -> None:
    words, message = BAD[name]
    corpus = write_corpus(tmp_path)
    words = [str(corpus) if w == "CORPUS" else w for w in words]
    small = [] if "--backbone" in words else SETTINGS
    position = 1 if words and words[0] == str(corpus) else 0
    code, printed, err = opencse("pretrain", *words[:position], "-o", str(tmp_path / "out"), *small, *words[position:])
    notes = ("learning the vocabulary", "training on")
    lines = [line for line in err.splitlines() if line and not any(note in line for note in notes)]
    assert code == 2, err
    assert len(lines) == 1, err
    assert lines[0].startswith("opencse: ")
    assert message in lines[0]
    assert "Traceback" not in err + printed
    assert not (tmp_path / "out").exists()


def test_a_model_without_a_masked_lm_head_of_its_kind(tmp_path: Path, opencse) -> None:
    folder = tiny_bert(tmp_path / "bert")
    (folder / "config.json").write_text('{"model_type": "clip"}')
    code, _, err = opencse(
        "pretrain", str(write_corpus(tmp_path)), "-o", str(tmp_path / "out"), "--backbone", str(folder)
    )
    assert code == 2, err
    assert "cannot be loaded" in err
