"""The user's source of paraphrases is checked before any work begins."""

import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.sampling import paraphrase_columns, paraphrase_settings


def test_a_folder_is_refused_at_once(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("text,paraphrase\nIt rains.,Rain falls.\n", encoding="utf-8")
    assert paraphrase_columns(tmp_path / "table.csv") == ("text", "paraphrase")
    with pytest.raises(OpencseError, match="is a folder, not a file"):
        paraphrase_settings(tmp_path, {})
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(OpencseError, match="its columns are a, b"):
        paraphrase_columns(tmp_path / "other.tsv")


@pytest.mark.parametrize(("recipe", "place"), [("osscse", "build.paraphrase"), ("debcse", "build.positive.source")])
def test_a_table_takes_the_place_of_the_recipes_own_candidates(tmp_path, recipe: str, place: str) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("text\tcandidate\na\tb\n")
    layer = RecipeFile.read(recipe).layers["with"]["paraphrases"]
    settings = [f"path={table}", "text_column=text", "candidate_column=candidate"]
    assert paraphrase_settings(table, layer) == [f"{place}.{each}" for each in settings]
