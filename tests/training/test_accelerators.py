"""Runs as on an accelerator, on a CPU: the layout of a batch is computed with it, not read from its mask."""

from __future__ import annotations

import numpy as np
import pytest

from opencse.encoder.packing import Packing
from tests.tiny import tiny_bert
from tests.training.dry_run import as_on_an_accelerator
from tests.training.helpers import metrics, run, write_corpus


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def test_a_packed_run_learns_as_a_padded_one(tmp_path, backbone, monkeypatch) -> None:
    rates, attend = [], Packing.attend
    monkeypatch.setattr(Packing, "attend", lambda *given: (rates.append(given[4]), attend(*given))[1])
    corpus = write_corpus(tmp_path)
    settings = ("training.max_steps=4", "training.log_every=4")
    with as_on_an_accelerator():
        run(corpus, backbone, tmp_path / "packed", *settings)
    assert rates == [0.0, *[0.1] * 5]  # the trial of the encoder, then the discarded step too, with the model's dropout
    monkeypatch.setattr("opencse.training.train.prepare_for_training", lambda encoder: False)
    run(corpus, backbone, tmp_path / "padded", *settings)
    assert len(rates) == 6
    packed, padded = metrics(tmp_path / "packed")[0], metrics(tmp_path / "padded")[0]
    assert packed.keys() == padded.keys()
    assert np.isfinite(list(packed.values())).all()
    assert packed["loss"] == pytest.approx(padded["loss"], rel=0.4), "the same but for dropout, over four small steps"
