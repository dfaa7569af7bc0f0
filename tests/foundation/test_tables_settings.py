from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.foundation.errors import OpencseError
from opencse.foundation.toml_tables import parse_override, parse_toml
from opencse.recipes import Recipe, load_recipe

VALUES = ["nan", "inf", "-1", "0", "1e400", "9" * 30, '"x"', "[]", "{}", "true", "2020-01-01", "[nan]", "9" * 5000]
KEYS = ["optimizer.lr", "training.seed", "schedule.warmup", "terms", "views.anchor", "terms.info_nce", "for.other"]


def names(error, part) -> None:
    assert part in str(error)


@settings(max_examples=100, deadline=None)
@given(text=st.text() | st.text("[]{}=.\"'a1\n#", max_size=60))
def test_any_text_is_toml_or_refused(text) -> None:
    try:
        assert isinstance(parse_toml(text, "here"), dict)
    except OpencseError as error:
        names(error, "here")


@pytest.mark.parametrize("text", ["x = " + "[" * 1500 + "]" * 1500, "x = " + "9" * 5000])
def test_toml_that_is_too_deep_or_too_large_is_refused(text) -> None:
    with pytest.raises(OpencseError, match=r"deep|cannot be read"):
        parse_toml(text, "here")


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=30))
def test_any_override_is_read_or_refused(text) -> None:
    for one in (text, f"a.b={text}"):
        try:
            key, _ = parse_override(one)
        except OpencseError:
            continue
        assert key


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", VALUES)
def test_any_value_gives_a_recipe_or_one_clear_line(key, value) -> None:
    try:
        assert isinstance(load_recipe("simcse", overrides=[f"{key}={value}"]), Recipe)
    except OpencseError as error:
        names(error, key.split(".")[0].removesuffix("s"))


@pytest.mark.parametrize("key", ["for", "with", "faithful"])
@pytest.mark.parametrize("value", ["3", "[1]", "{other = 3}"])
def test_layers_of_a_recipe_are_tables(tmp_path, key, value) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "simcse"\n{key} = {value}\n')
    with pytest.raises(OpencseError, match=f"{key}|unknown key 'other'"):
        load_recipe(path, variant="faithful", family="other")


def test_dotted_keys_of_great_depth_are_refused() -> None:
    with pytest.raises(OpencseError, match="nested too deep"):
        parse_toml("a." * 30_000 + "b = 1", "recipe.toml")
