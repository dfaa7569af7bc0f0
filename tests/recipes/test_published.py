from __future__ import annotations

from typing import Any

import pytest

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

SCORES: dict[str, tuple[float | None, ...]] = {
    "simcse": (76.25, 78.41, 76.57, 78.90),
    "simcse-sup": (81.57, 82.21, 82.52, 83.76),
    "diffcse": (78.49, None, 77.80, None),
    "promptbert": (78.54, None, 79.15, None),
    "osscse": (79.08, 80.47, 80.46, 81.68),
    "byop-c": (77.32, 78.89, 77.62, 78.56),
    "byop-c-m": (77.32, 79.08, 77.61, 78.95),
    "byop-d": (77.45, 79.23, 77.43, 78.38),
    "byop-d-m": (77.35, 78.21, 77.69, 78.65),
    "byop-rankcse": (80.53, 80.64, 79.51, 79.53),
    "ifm": (77.39, 77.99, 76.97, 77.78),
    "sncse": (78.97, 80.19, 79.23, 81.77),
    "arccse": (78.11, 79.37, None, None),
    "esimcse": (78.27, 79.31, 77.44, 79.45),
    "dclr": (77.22, 78.90, 77.87, 79.30),
    "rankcse-listmle": (80.36, 80.12, 79.05, 79.67),
    "rlrd": (80.89, 80.88, None, None),
    "hince": (77.05, 78.45, 76.94, 78.90),
    "san-simcse": (77.05, 78.45, 76.94, 78.90),
    "san-sncse": (79.13, 80.05, 78.83, 81.02),
    "san-rankcse": (80.33, 80.24, 79.17, 79.78),
    "san-rlrd": (81.01, 81.01, None, None),
    "debcse": (80.33, 81.11, 80.60, 82.01),
}
"""Averages over the seven STS tasks."""


def by_family(value: Any) -> dict[str, Any]:
    """The value of each family for which there is one."""
    values = value if isinstance(value, tuple) else (value,) * len(PUBLISHED_FAMILIES)
    return {f: v for f, v in zip(PUBLISHED_FAMILIES, values, strict=True) if v is not None}


@pytest.mark.parametrize("name", published_names())
def test_the_faithful_variant_has_every_value(name: str) -> None:
    differing = {
        f"{entry.family} {entry.key}": (faithful, entry.expected)
        for entry, _, faithful in conformity(name)
        if faithful != entry.expected
    }
    assert not differing


def test_all_published_systems_have_a_table() -> None:
    assert set(recipe_names()) - set(published_names()) == {"debias", "transformations"}
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
