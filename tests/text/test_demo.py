from __future__ import annotations

from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.text import demo


def test_demo_stands_for_the_texts_of_the_package_unless_a_file_has_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (demo.corpus("demo").name, demo.pairs("demo").name) == ("sentences.txt", "pairs.tsv")
    (tmp_path / "demo").write_text("A sentence of my own.\n")
    assert (demo.corpus("demo"), demo.pairs("demo")) == (Path("demo"), Path("demo"))


@pytest.mark.parametrize("read", [demo.corpus, demo.pairs])
def test_an_empty_path_is_not_the_current_folder(read) -> None:
    with pytest.raises(OpencseError, match="the path is empty"):
        read("")
    assert read(".") == Path(".")
