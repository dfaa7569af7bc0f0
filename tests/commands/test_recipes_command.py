from __future__ import annotations

from typer.testing import CliRunner

from opencse.commands.main import app
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe


def test_published_settings_stand_beside_the_recipes_own() -> None:
    result = CliRunner().invoke(app, ["recipes", "show", "dclr", "--published", "--family", "roberta-base"])
    assert result.exit_code == 0
    (lr,) = (line for line in result.output.splitlines() if line.startswith("optimizer.lr"))
    assert lr.split()[1:6] == ["roberta-base", "3e-05", "3e-05", "3e-05", "run.sh,"]
    assert "bert-large" not in result.output


def test_each_value_says_where_it_was_published(tmp_path) -> None:
    shown = CliRunner().invoke(app, ["recipes", "show", "osscse", "--family", "bert-base"]).output
    assert "lr = 1e-05  # " in shown
    (precision,) = (line for line in shown.splitlines() if line.startswith("precision"))
    assert precision.startswith('precision = "auto"  # published: fp16; ')
    path = tmp_path / "osscse.toml"
    path.write_text(shown)
    assert load_recipe(path, family="bert-base") == load_recipe("osscse", family="bert-base")


def test_a_recipe_of_no_paper_has_nothing_to_compare() -> None:
    result = CliRunner().invoke(app, ["recipes", "show", "debias", "--published"])
    assert isinstance(result.exception, OpencseError)


def test_a_family_without_published_settings_is_said() -> None:
    result = CliRunner().invoke(app, ["recipes", "show", "promptbert", "--published", "--family", "mini-mlm"])
    assert "nothing was published for promptbert with the family mini-mlm" in result.output
