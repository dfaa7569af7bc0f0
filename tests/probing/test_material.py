from __future__ import annotations

import pytest

from opencse.errors import OpencseError
from opencse.probing.material import short_names


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
