from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import opencse.recipes as package
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe, recipe_names
from opencse.recipes.published_settings import (
    ABSENT,
    PUBLISHED_FAMILIES,
    conformity,
    published_names,
    published_settings,
    values_of,
)
from tests.recipes.published_values import PUBLISHED, SCORES

FOLDER = Path(package.__file__).parent / "published"


def by_family(value: Any) -> dict[str, Any]:
    """The value of each family for which there is one."""
    values = value if isinstance(value, tuple) else (value,) * len(PUBLISHED_FAMILIES)
    return {f: v for f, v in zip(PUBLISHED_FAMILIES, values, strict=True) if v is not None}


def written(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What the table of a name says itself, without what it inherits, in the form of `by_family`."""
    found = {}
    for entry in tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")).get("settings", []):
        for where in ("published", "coded"):
            if where in entry:
                value = entry[where]
                found[entry["key"], where] = value if isinstance(value, dict) else by_family(value)
    return found


@pytest.mark.parametrize("name", sorted(f.stem for f in FOLDER.glob("*.toml")))
def test_every_value_is_the_one_that_was_read_in_paper_or_code(name: str) -> None:
    assert {place: by_family(value) for place, value in PUBLISHED[name].items()} == written(name)


@pytest.mark.parametrize("name", published_names())
def test_the_faithful_variant_has_every_value(name: str) -> None:
    differing = {
        f"{entry.family} {entry.key}": (faithful, entry.expected)
        for entry, _, faithful in conformity(name)
        if faithful != entry.expected
    }
    assert not differing


def test_all_published_systems_have_a_table_and_several_hundred_values_are_compared() -> None:
    assert set(recipe_names()) - set(published_names()) == {"debias", "transformations"}
    own = sum(len(values) for name in PUBLISHED for values in written(name).values())
    assert own > 700
    assert sum(len(published_settings(name)) for name in published_names()) > 2000


@pytest.mark.parametrize("name", published_names())
def test_each_value_has_a_source_and_each_exception_a_reason(name: str) -> None:
    for entry in published_settings(name):
        assert entry.source or (entry.published is None and entry.coded is None), entry
        assert bool(entry.why) == (entry.ours is not None), entry


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_the_papers(name: str) -> None:
    assert load_recipe(name).published == by_family(SCORES[name])


def test_what_a_table_inherits_says_from_where() -> None:
    sources = {entry.key: entry.source for entry in published_settings("byop-c")}
    assert sources["terms.info_nce.size"] == "Table 6"
    assert sources["encoder.pooling"].startswith("simcse: ")


def test_a_setting_is_found_by_its_key() -> None:
    values = values_of(load_recipe("san-simcse", family="roberta-base", variant="faithful"))
    assert values["terms.info_nce.negative_temperature"] == 0.08
    assert values["build.substitution.divisor"] == 20.0
    assert values["encoder.dropout"] == 0.15
    assert values["terms.recall.gamma"] == ABSENT
    assert values_of(load_recipe("simcse"))["encoder.dropout"] == ABSENT


def test_a_recipe_of_no_paper_has_no_table() -> None:
    with pytest.raises(OpencseError, match="no settings were published"):
        published_settings("debias")
