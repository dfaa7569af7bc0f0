from __future__ import annotations

import pytest

from opencse.encoder import load_encoder, save_encoder
from opencse.evaluation.probes.probe_suite import load_probe_data, probe_models, short_names
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert


def test_names_are_as_short_as_tells_them_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("a/run/model", "b/run/model", "c"):
        (tmp_path / folder).mkdir(parents=True)
    assert short_names(["minilm"]) == ["minilm"]
    assert short_names(["minilm", "c", "owner/name"]) == ["minilm", "c", "name"]
    assert short_names(["a/run", "c"]) == ["run", "c"]
    assert short_names(["a/run", "b/run/model"]) == ["a/run", "b/run"]
    for doubled in (["c", "./c"], ["a/run", "a/run/model"], ["minilm", "minilm"]):
        with pytest.raises(OpencseError, match="named twice"):
            short_names(doubled)


def test_a_pooling_is_for_encoders_that_have_none(tmp_path, monkeypatch):
    plain = tiny_bert(tmp_path / "plain")
    pooled = tmp_path / "pooled"
    save_encoder(load_encoder(plain, pooling="cls"), pooled, "")
    data = load_probe_data()
    monkeypatch.setattr("opencse.evaluation.probes.probe_suite.ProbeSuite", lambda _: Nothing())
    _, settings = probe_models([str(plain), str(pooled)], data, pooling="mean")
    assert [each["pooling"] for each in settings.values()] == ["mean", "cls"]


class Nothing:
    """A prober that measures nothing."""

    texts: tuple[str, ...] = ()
    seconds = 0.0

    def __call__(self, embedder):
        return self
