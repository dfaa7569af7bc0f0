"""Runs as on an accelerator, on a CPU: sentences packed by kernels for sequences of varying length, or padded."""

from __future__ import annotations

import numpy as np
import pytest

from opencse.encoder.sequence_attention import sequence_attention
from opencse.training import train as train_module
from tests.tiny import tiny_bert
from tests.training.dry_run import as_on_an_accelerator, prepare
from tests.training.helpers import metrics, run, write_corpus


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def test_a_packed_run_learns_as_a_padded_one(tmp_path, backbone, monkeypatch) -> None:
    calls = []
    monkeypatch.setattr(
        "opencse.encoder.attention.sequence_attention",
        lambda *arguments: (calls.append(arguments[4]), sequence_attention(*arguments))[1],
    )
    corpus = write_corpus(tmp_path)
    settings = ("training.max_steps=4", "training.log_every=4")
    with as_on_an_accelerator():
        run(corpus, backbone, tmp_path / "packed", *settings)
    assert calls == [0.1] * 5  # the discarded step too, with the dropout of the model
    run(corpus, backbone, tmp_path / "padded", *settings)
    packed, padded = metrics(tmp_path / "packed")[0], metrics(tmp_path / "padded")[0]
    assert packed.keys() == padded.keys()
    assert np.isfinite(list(packed.values())).all()
    assert packed["loss"] == pytest.approx(padded["loss"], rel=0.2)


def test_sentences_are_padded_where_no_kernel_packs_them_and_one_line_says_so(tmp_path, backbone, monkeypatch) -> None:
    monkeypatch.setattr(train_module, "supports_packing_on", lambda *_: False)
    notes: list[str] = []
    corpus = write_corpus(tmp_path)
    prepared = prepare(lambda: run(corpus, backbone, tmp_path / "run", notify=notes.append))
    assert [note for note in notes if "padded" in note] == [
        "cpu: sentences are padded, because PyTorch has no kernel here that packs them"
    ]
    assert prepared.assembler([0, 1, 2]).passes[0].packings == []
