"""The user's source of paraphrases is checked before any work begins."""

import pytest

from opencse.data.paraphrases import Paraphrases, paraphrase_columns
from opencse.errors import OpencseError


def test_a_folder_is_refused_at_once(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("text,paraphrase\nIt rains.,Rain falls.\n", encoding="utf-8")
    assert paraphrase_columns(tmp_path / "table.csv") == ("text", "paraphrase")
    with pytest.raises(OpencseError, match="is a folder, not a file"):
        Paraphrases(table=tmp_path).settings()
