from __future__ import annotations

from opencse.recipes import load_recipe, shortened


def test_a_trial_keeps_views_and_terms_and_cuts_sizes() -> None:
    whole = load_recipe("debias")
    short = shortened(whole)
    assert (short.views, short.terms, short.build) == (whole.views, whole.terms, whole.build)
    assert short.training.max_steps == 20
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


def test_a_recipe_without_limits_gets_some() -> None:
    short = shortened(load_recipe("simcse"))
    assert (short.training.max_steps, short.corpus.rows) == (20, 400)


def test_the_faithful_variant_does_not_say_how_the_default_differs_from_it() -> None:
    assert load_recipe("simcse").differs
    assert load_recipe("simcse", variant="faithful").differs == ""
