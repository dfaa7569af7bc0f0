"""A `Recipe` object is used like a name: nothing that the user adds to it is dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.recipes.load import adapt_recipe


def test_an_object_gets_the_settings_of_the_family_and_the_overrides_as_a_name_does() -> None:
    given = load_recipe("simcse", overrides=["training.batch_size=16"])
    adapted = adapt_recipe(given, family="minilm", overrides=["training.seed=3"])
    settings = ["training.batch_size=16", "training.seed=3"]
    by_name = load_recipe("simcse", family="minilm", overrides=settings)
    assert adapted == by_name
    assert adapted.training.seed == 3
    assert adapted.optimizer.lr != given.optimizer.lr


def test_every_part_of_a_recipe_survives_an_override() -> None:
    for name in ("debcse", "osscse", "san-byop", "rlrd-simcse"):
        try:
            given = load_recipe(name, family="bert-base")
        except OpencseError:
            continue
        assert adapt_recipe(given, family="bert-base", overrides={"training.seed": 3}) == replace(
            given, training=replace(given.training, seed=3)
        )


def test_what_contradicts_is_refused() -> None:
    sound = load_recipe("simcse", family="bert-base")
    with pytest.raises(OpencseError, match="variant='faithful' was given"):
        adapt_recipe(sound, family="bert-base", variant="faithful")
    with pytest.raises(OpencseError, match="sed"):
        adapt_recipe(sound, family="bert-base", overrides=["training.sed=3"])


def test_a_changed_object_keeps_its_changes_and_says_what_it_lacks(caplog) -> None:
    changed = replace(load_recipe("simcse"), title="mine")
    with caplog.at_level("INFO", logger="opencse"):
        assert adapt_recipe(changed, family="minilm") == changed
    assert "without the published settings for minilm" in caplog.text


def test_a_family_that_the_user_chose_stays_and_is_noted(caplog) -> None:
    chosen = load_recipe("simcse", family="bert-base")
    with caplog.at_level("INFO", logger="opencse"):
        assert adapt_recipe(chosen, family="minilm") == chosen
    assert "keeps its settings for bert-base" in caplog.text
