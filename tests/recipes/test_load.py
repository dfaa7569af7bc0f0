from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import opencse.recipes as package
from opencse.commands.recipes import (
    ABSENT,
    PUBLISHED_FAMILIES,
    conformity,
    published_names,
    published_settings,
    values_of,
)
from opencse.encoder.names import FAMILIES, family_of
from opencse.foundation.errors import OpencseError
from opencse.recipes import dump_recipe, load_recipe, recipe_names, shortened
from opencse.recipes.load import RecipeFile
from tests.recipes.published_values import PUBLISHED, SCORES


@pytest.mark.parametrize("variant", ["sound", "faithful"])
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_resolves_and_reads_back(tmp_path, name: str, variant: str) -> None:
    for family in (*FAMILIES, "other"):
        recipe = load_recipe(name, family=family, variant=variant)
        assert recipe.title
        assert recipe.paper
        path = tmp_path / f"{name}.toml"
        path.write_text(dump_recipe(recipe), encoding="utf-8")
        assert load_recipe(path, family=family, variant=variant) == recipe


def test_published_settings_follow_the_family() -> None:
    assert load_recipe("simcse", family="bert-base").optimizer.lr == 3e-5
    assert load_recipe("simcse", family="roberta-base").training.batch_size == 512
    assert load_recipe("byop-c", family="roberta-base").training.batch_size == 128
    assert load_recipe("simcse", family="minilm").encoder.pooling == "backbone"
    transfer = [load_recipe("diffcse-transfer", family=family) for family in PUBLISHED_FAMILIES]
    assert [(of.optimizer.lr, of.losses[1].ratio) for of in transfer] == [
        (lr, 0.15) for lr in (2e-6, 2e-6, 3e-6, 3e-6)
    ]


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12}, "bert-base"),
        ({"model_type": "roberta", "hidden_size": 1024, "num_hidden_layers": 24}, "roberta-large"),
        ({"model_type": "modernbert", "hidden_size": 768, "num_hidden_layers": 22}, "other"),
    ],
)
def test_family(config, family) -> None:
    assert family_of(config) == family


def test_overrides_win_and_reach_losses_by_name() -> None:
    overrides = ["optimizer.lr=1e-6", "losses.info_nce.temperature=0.1", "training.precision=fp32"]
    recipe = load_recipe("simcse", family="bert-large", overrides=overrides)
    assert (recipe.optimizer.lr, recipe.losses[0].temperature, recipe.training.precision) == (
        1e-6,
        0.1,
        "fp32",
    )


def test_extends_merges_tables_replaces_lists_and_patches_losses(tmp_path) -> None:
    (tmp_path / "base.toml").write_text("""
extends = "simcse"
title = "base"
[optimizer]
lr = 1.0
""")
    (tmp_path / "child.toml").write_text("""
extends = "base.toml"
title = "child"
[losses.info_nce]
temperature = 0.2
[training]
batch_size = 8
""")
    recipe = load_recipe(tmp_path / "child.toml")
    assert (recipe.name, recipe.title, recipe.optimizer.lr, recipe.training.batch_size) == (
        "child",
        "child",
        1.0,
        8,
    )
    assert recipe.losses[0].temperature == 0.2
    assert recipe.published == {}


def test_a_child_adds_to_a_list_and_changes_the_kind_of_a_loss_that_keeps_its_name(
    tmp_path,
) -> None:
    patch = 'kind = "margin_info_nce"\nsigns = "p+"\nsize = 0.1\nnegatives = { add = ["anchor"] }'
    (tmp_path / "child.toml").write_text(f'extends = "simcse-sup"\n[losses.info_nce]\n{patch}')
    (loss,) = load_recipe(tmp_path / "child.toml").losses
    assert (loss.kind, loss.name, loss.signs) == ("margin_info_nce", "info_nce", "p+")
    assert (loss.positive, loss.negatives) == ("entailment", ("contradiction", "anchor"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("oops", "not valid TOML"),
        ('extends = "me.toml"', "extends itself"),
        ('extends = "simcsee"', r"unknown recipe 'simcsee'. Did you mean 'simcse'"),
        ('extends = "simcse"\n[optimiser]\nlr = 1', r"me.toml: unknown key 'optimiser'. Did you mean 'optimizer'"),
        ('extends = "simcse"\n[optimizer]\nlr = "fast"', r"optimizer.lr: expected a number, found str 'fast'"),
        ('extends = "simcse"\n[optimizer]\nlr = true', "optimizer.lr: expected a number, found bool"),
        ('extends = "simcse"\n[encoder]\npooling = "max"', "'backbone' or 'cls' or 'mean'"),
        ('extends = "simcse"\n[[losses]]\nkind = "contrastiv"', r"losses\[0\]: unknown kind 'contrastiv'"),
        ('extends = "simcse"\n[[losses]]\npositive = "twin"', "the key 'kind' is missing"),
        ('extends = "simcse"\n[losses.info_nce]\nnegatives = [""]', "needs the view '', which is not"),
        ('extends = "simcse"\n[losses.info_nce]\ntemperature = -1', "temperature must lie in"),
        ('extends = "byop-c"\n[losses.info_nce]\nsigns = "p*"', "must read like 'p"),
        ('extends = "simcse"\n[losses.info_nce]\nkind = "margin_info_nce"\nsigns = "p+"', "the key 'size' is missing"),
        ('extends = "simcse"\n[views.anchor]\nprompt = "no place"', "exactly once"),
        ('extends = "simcse"\n[views.anchor]\nprompt = "{} {mask}"', "set encoder.pooling to 'mask'"),
        ('extends = "debias"\n[corpus.parts.swapped]\nkeeps = ["anchor"]', "no view reads the column 'anchor'"),
        ('extends = "debias"\n[views.text]\ntext = "other"', "'other', which no part of the corpus has"),
        ('extends = "simcse"\n[views]\nanchor = 3', "views.anchor: expected a table"),
        ('[views]\na = {}\n[[losses]]\nkind="info_nce"\nanchor="a"\npositive="a"\n[[losses]]\nkind="info_nce"\n'
         'anchor="a"\npositive="a"', "two losses share a name"),
        ('extends = "simcse"\n[[terms]]\nkind = "info_nce"', "'terms' is now called 'losses'.*losses"),
        ('extends = "simcse"\n[faithful.terms.info_nce]\nweight = 1', "me.toml: 'terms' is now called"),
        ('extends = "simcse"\n[faithful.for.bert-base.terms.info_nce]\nweight = 1', "now called 'losses'"),
        ('extends = "simcse"\n[for.bert-base.terms.info_nce]\nweight = 1', "now called 'losses'"),
    ],
)  # fmt: skip
def test_mistakes_name_file_key_and_what_is_allowed(tmp_path, text: str, match: str) -> None:
    (tmp_path / "me.toml").write_text(text)
    with pytest.raises(OpencseError, match=match) as caught:
        load_recipe(tmp_path / "me.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "override",
    [
        "noequals",
        "a b=1",
        "optimizer.lrr=1",
        "losses.other.weight=1",
        "losses.7.weight=1",
        "variant=faithful",
    ],
)
def test_bad_overrides_are_named(override: str) -> None:
    with pytest.raises(OpencseError, match=r"--set|unknown"):
        load_recipe("simcse", overrides=[override])


@pytest.mark.parametrize(
    "overrides",
    [["training.epochs=3"], {"training.epochs": 3}, {"training": {"epochs": 3}}],
)
def test_epochs_of_the_user_win_over_steps_of_the_recipe(overrides: Any) -> None:
    assert load_recipe("ct").training.max_steps
    training = load_recipe("ct", overrides=overrides).training
    assert (training.epochs, training.max_steps) == (3, None)
    both = ["training.epochs=3", "training.max_steps=7"]
    assert load_recipe("ct", overrides=both).training.max_steps == 7
    assert load_recipe("ct", overrides=["training.batch_size=8"]).training.max_steps


def test_the_former_key_of_losses_is_told_in_overrides() -> None:
    with pytest.raises(OpencseError, match=r"--set terms\.info_nce\.weight: 'terms' is now called"):
        load_recipe("simcse", overrides=["terms.info_nce.weight=1"])
    with pytest.raises(OpencseError, match="'terms' is now called 'losses'"):
        RecipeFile.read("simcse").check(["terms.info_nce.weight=1"])


def test_unknown_names() -> None:
    with pytest.raises(OpencseError, match="Did you mean 'simcse'"):
        load_recipe("simcs")
    with pytest.raises(OpencseError, match="no such recipe file"):
        load_recipe("none.toml")
    with pytest.raises(OpencseError, match="unknown variant"):
        load_recipe("simcse", variant="faithfull")


def test_columns_say_what_may_be_missing_and_the_default_how_it_differs() -> None:
    assert load_recipe("hince").columns == {"text": False, "negative": True}
    assert load_recipe("simcse").differs
    assert load_recipe("simcse", variant="faithful").differs == ""


EXTRA = """
extends = "simcse"

[with.paraphrases]
views.paraphrase = { text = "paraphrase", optional = true }
losses.near = { kind = "info_nce", positive = "paraphrase" }
build.paraphrase = { kind = "candidate_table", path = "" }
"""


def test_what_the_user_brings_adds_losses_and_a_weight_of_zero_leaves_one_out(tmp_path) -> None:
    path = tmp_path / "extra.toml"
    path.write_text(EXTRA)
    assert [t.name for t in load_recipe(path).losses] == ["info_nce"]
    recipe = load_recipe(
        path, having=["paraphrases"], overrides=["build.paraphrase.path=table.tsv"]
    )
    assert [t.name for t in recipe.losses] == ["info_nce", "near"]
    assert recipe.build["paraphrase"].path == "table.tsv"
    with pytest.raises(OpencseError, match="no use for labels"):
        load_recipe(path, having=["labels"])
    recipe = load_recipe(path, having=["paraphrases"], overrides=["losses.info_nce.weight=0"])
    assert [t.name for t in recipe.losses] == ["near"]
    assert list(recipe.used_views) == ["anchor", "paraphrase"]


def test_a_trial_keeps_views_and_losses_and_cuts_sizes() -> None:
    whole = load_recipe("debias")
    short = shortened(whole)
    assert (short.views, short.losses, short.build) == (whole.views, whole.losses, whole.build)
    assert short.training.most_steps == 20
    assert (short.corpus.rows, short.corpus.opposites) == (400, 400)
    assert {name: part.rows for name, part in short.corpus.parts.items()} == {
        "opposites": 320,
        "swapped": 400,
        "roles": 120,
        "reordered": 267,
        "contradicted": 360,
        "claims": 400,
        "amounts": 134,
        "searched": 400,
    }
    assert shortened(short) == short
    short = shortened(load_recipe("simcse"))
    assert (short.training.most_steps, short.corpus.rows) == (20, 400)


FOLDER = Path(package.__file__).parent / "published"


def by_family(value: Any) -> dict[str, Any]:
    """The value of each family for which there is one."""
    values = value if isinstance(value, tuple) else (value,) * len(PUBLISHED_FAMILIES)
    return {f: v for f, v in zip(PUBLISHED_FAMILIES, values, strict=True) if v is not None}


def written(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What the table of a name says itself, without what it inherits, in the form of `by_family`."""
    found = {}
    for entry in tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")).get(
        "settings", []
    ):
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


def test_a_setting_is_found_by_its_key_and_its_source_by_its_table() -> None:
    values = values_of(load_recipe("san-simcse", family="roberta-base", variant="faithful"))
    assert values["losses.info_nce.negative_temperature"] == 0.08
    assert values["build.substitution.divisor"] == 20.0
    assert values["encoder.dropout"] == 0.15
    assert values["losses.recall.gamma"] == ABSENT
    assert values_of(load_recipe("simcse"))["encoder.dropout"] == ABSENT
    sources = {entry.key: entry.source for entry in published_settings("byop-c")}
    assert sources["losses.info_nce.size"] == "Table 6"
    assert sources["encoder.pooling"].startswith("simcse: ")
    with pytest.raises(OpencseError, match="no settings were published"):
        published_settings("debias")
