"""The user's source of paraphrases is checked before any work begins."""

import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes.rows.paraphrases import Paraphrases, paraphrase_columns


def test_a_folder_is_refused_at_once(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("text,paraphrase\nIt rains.,Rain falls.\n", encoding="utf-8")
    assert paraphrase_columns(tmp_path / "table.csv") == ("text", "paraphrase")
    with pytest.raises(OpencseError, match="is a folder, not a file"):
        Paraphrases(table=tmp_path).settings({})
