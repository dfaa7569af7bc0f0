"""The language of texts, and the rules for it."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from opencse.evaluation.check.contradictions import ExclusiveNumberSwap
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.recipes.load import RecipeFile
from opencse.text import languages as registry
from opencse.text.documents import likely_language
from opencse.text.languages import ENGLISH, LanguagePack, choose_language, language_packs
from opencse.text.views.registry import HardNegatives, Negation, RolePairs, SourceRow

ENGLISH_TEXT = ["The shop is open and it has a garden."]
FRENCH_TEXT = ["La gare est fermée et les trains ne sont pas là."]


def test_english_keeps_the_specifications_of_each_recipe() -> None:
    for name in ("debias", "sncse", "osscse", "san-sncse"):
        having = ["paraphrases"] if RecipeFile.read(name).layers["with"] else []
        build = load_recipe(name, having=having).build
        assert ENGLISH.localise(build) == build
        assert "left out" not in choose_language("en", ()).line(build)


def test_the_language_comes_from_the_texts_or_from_the_user() -> None:
    assert choose_language("auto", ENGLISH_TEXT).pack is ENGLISH
    assert choose_language("auto", ["x7 k-9 ***"]).pack is ENGLISH
    assert choose_language("en", FRENCH_TEXT).pack is ENGLISH
    assert "is set to English" in choose_language("en", FRENCH_TEXT).line({"negation": Negation()})
    assert choose_language("en", FRENCH_TEXT).line({"related": HardNegatives(model="backbone")}) == ""
    with pytest.raises(OpencseError, match="no rules for the language 'tlh'"):
        choose_language("tlh", ENGLISH_TEXT)


def test_a_pipeline_of_the_user_replaces_that_of_the_pack_but_not_that_of_one_view() -> None:
    pack = choose_language("en", (), "en_core_web_sm").pack
    assert pack.localised(Negation()) == Negation(syntax="en_core_web_sm")
    assert pack.localised(Negation(syntax="folder")) == Negation(syntax="folder")


def test_a_language_without_a_pack_changes_numbers_and_leaves_the_rest_out() -> None:
    chosen = choose_language("auto", FRENCH_TEXT)
    specs = {"negation": Negation(remove=False), "number": ExclusiveNumberSwap(), "roles": RolePairs()}
    specs["related"] = HardNegatives(model="backbone")
    line = chosen.line(specs)
    assert "look French, for which there are no rules: only numbers are changed; left out: negation, roles" in line
    localised = chosen.pack.localise(specs)
    assert localised["related"] is specs["related"]
    assert localised["roles"].columns("roles") == specs["roles"].columns("roles")
    rows = [SourceRow(id=0, text="Les 12 salles sont propres."), SourceRow(id=1, text="La version 2.0 de 1995.")]
    assert [view.text for view in localised["negation"].open()(rows)] == [None, None]
    assert [[view.text for view in views] for views in localised["roles"].open()(rows)] == [[None, None]] * 2
    changed, kept = (view.text for view in localised["number"].open()(rows))
    assert changed is not None
    assert changed.startswith("Les ")
    assert changed.endswith(" salles sont propres.")
    assert "12" not in changed
    assert kept is None


@pytest.mark.parametrize(("language", "beginning"), [("auto", "the texts look"), ("de", "the language is set to")])
def test_texts_in_german_get_one_line_that_names_the_pack(monkeypatch, language: str, beginning: str) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    language_packs.cache_clear()
    text = ["Die Rückgabe ist nach dem Ende des Monats nicht mehr möglich, und wir haben sie nie bezahlt."]
    assert choose_language(language, text).line({"negation": Negation()}) == (
        f"{beginning} German, whose rules are not installed (`pip install opencse-german`, or packs/opencse-german in "
        "the repository of opencse): only numbers are changed; left out: negation"
    )
    language_packs.cache_clear()


FRENCH = LanguagePack(code="fr", name="French", rules={}, syntax="blank:fr")


def test_a_pack_of_another_package_is_found_by_its_entry_point(monkeypatch) -> None:
    entry, no_pack = (EntryPoint("fr", f"{__name__}:{name}", "opencse.languages") for name in ("FRENCH", "FRENCH_TEXT"))
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    language_packs.cache_clear()
    try:
        assert choose_language("auto", FRENCH_TEXT).pack is FRENCH
        line = "the texts look French: sentences are rewritten by rules for French; left out: negation"
        assert choose_language("auto", FRENCH_TEXT).line({"negation": Negation()}) == line
        monkeypatch.setattr(registry, "entry_points", lambda group: [no_pack])
        language_packs.cache_clear()
        with pytest.raises(OpencseError, match="is no language pack"):
            language_packs()
    finally:
        language_packs.cache_clear()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Refunds are not allowed after the end of the month, and they were never paid in cash.", "en"),
        ("Die Rückgabe ist nach dem Ende des Monats nicht mehr möglich, und wir haben sie nie bezahlt.", "de"),
        ("Le remboursement n'est pas possible après la fin du mois, et nous ne payons pas en espèces.", "fr"),
        ("El reembolso no es posible después del fin de mes, y nunca se paga en efectivo por las tiendas.", "es"),
        ("x = 17 % 3; print(y)", None),
        ("", None),
    ],
)
def test_the_language_by_its_function_words(text, language) -> None:
    assert likely_language([text]) == language
