"""The language of texts, and the rules for it."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
from transformers import AutoTokenizer

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.recipes import load_recipe
from opencse.recipes.load import RecipeFile
from opencse.text import languages as registry
from opencse.text import syntax
from opencse.text.documents import likely_language
from opencse.text.english.exclusive import ExclusiveNumberSwap
from opencse.text.english.parse import parse_without_asides
from opencse.text.generated.likely_words import static_lexicon
from opencse.text.languages import ENGLISH, LanguagePack, choose_language, language_packs
from opencse.text.syntax import SpacyParser, Token, load_parser
from opencse.text.views.registry import HardNegatives, Negation, RolePairs, SourceRow
from tests.tiny import tiny_bert, tiny_roberta

ENGLISH_TEXT = ["The shop is open and it has a garden."]
FRENCH_TEXT = ["La gare est fermée et les trains ne sont pas là."]


def test_english_keeps_the_specifications_of_each_recipe() -> None:
    for name in ("debias", "sncse", "osscse", "san-sncse"):
        having = ["paraphrases"] if RecipeFile.read(name).layers["with"] else []
        build = load_recipe(name, having=having).build
        assert ENGLISH.localise(build) == build
        assert "left out" not in choose_language("en", None).line(build)


def test_the_language_comes_from_the_texts_or_from_the_user() -> None:
    assert choose_language("auto", likely_language(ENGLISH_TEXT)).pack is ENGLISH
    assert choose_language("auto", likely_language(["x7 k-9 ***"])).pack is ENGLISH
    assert choose_language("en", likely_language(FRENCH_TEXT)).pack is ENGLISH
    assert "is set to English" in choose_language("en", likely_language(FRENCH_TEXT)).line(
        {"negation": Negation()}
    )
    assert (
        choose_language("en", likely_language(FRENCH_TEXT)).line(
            {"related": HardNegatives(model="backbone")}
        )
        == ""
    )
    with pytest.raises(OpencseError, match="no rules for the language 'tlh'"):
        choose_language("tlh", likely_language(ENGLISH_TEXT))


def test_the_pipeline_of_one_view_is_kept() -> None:
    pack = replace(ENGLISH, syntax="en_core_web_sm")
    assert pack.localised(Negation()) == Negation(syntax="en_core_web_sm")
    assert pack.localised(Negation(syntax="folder")) == Negation(syntax="folder")


def test_a_language_without_a_pack_changes_numbers_and_leaves_the_rest_out() -> None:
    chosen = choose_language("auto", likely_language(FRENCH_TEXT))
    specs = {
        "negation": Negation(remove=False),
        "number": ExclusiveNumberSwap(),
        "roles": RolePairs(),
    }
    specs["related"] = HardNegatives(model="backbone")
    line = chosen.line(specs)
    assert (
        "look French, for which there are no rules: only numbers are changed; left out: negation, roles"
        in line
    )
    localised = chosen.pack.localise(specs)
    assert localised["related"] is specs["related"]
    assert localised["roles"].columns("roles") == specs["roles"].columns("roles")
    rows = [
        SourceRow(id=0, text="Les 12 salles sont propres."),
        SourceRow(id=1, text="La version 2.0 de 1995."),
    ]
    assert [view.text for view in localised["negation"].open()(rows)] == [None, None]
    assert [[view.text for view in views] for views in localised["roles"].open()(rows)] == [
        [None, None]
    ] * 2
    changed, kept = (view.text for view in localised["number"].open()(rows))
    assert changed is not None
    assert changed.startswith("Les ")
    assert changed.endswith(" salles sont propres.")
    assert "12" not in changed
    assert kept is None


@pytest.mark.parametrize(
    ("language", "beginning"), [("auto", "the texts look"), ("de", "the language is set to")]
)
def test_texts_in_german_get_one_line_that_names_the_pack(
    monkeypatch, language: str, beginning: str
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    language_packs.cache_clear()
    text = [
        "Die Rückgabe ist nach dem Ende des Monats nicht mehr möglich, und wir haben sie nie bezahlt."
    ]
    assert choose_language(language, likely_language(text)).line({"negation": Negation()}) == (
        f"{beginning} German, whose rules are not installed (`pip install opencse-german`, or packs/opencse-german in "
        "the repository of opencse): only numbers are changed; left out: negation"
    )
    language_packs.cache_clear()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit(0)", "cannot be imported .SystemExit"),
        ("1 / 0", "cannot be imported .ZeroDivisionError"),
        ("PACK = 3", "is no language pack"),
        ("OTHER = 3", "cannot be imported .AttributeError"),
    ],
)
def test_a_broken_pack_is_named(tmp_path, monkeypatch, code, problem) -> None:
    (tmp_path / "own_pack.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_pack", raising=False)
    entry = EntryPoint("xx", "own_pack:PACK", "opencse.languages")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    language_packs.cache_clear()
    try:
        with pytest.raises(OpencseError, match=f"own_pack:PACK of the package {problem}"):
            language_packs()
    finally:
        language_packs.cache_clear()


FRENCH = LanguagePack(code="fr", name="French", rules={}, syntax="blank:fr")


def test_a_pack_of_another_package_is_found_by_its_entry_point(monkeypatch) -> None:
    entry, no_pack = (
        EntryPoint("fr", f"{__name__}:{name}", "opencse.languages")
        for name in ("FRENCH", "FRENCH_TEXT")
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    language_packs.cache_clear()
    try:
        assert choose_language("auto", likely_language(FRENCH_TEXT)).pack is FRENCH
        line = (
            "the texts look French: sentences are rewritten by rules for French; left out: negation"
        )
        assert (
            choose_language("auto", likely_language(FRENCH_TEXT)).line({"negation": Negation()})
            == line
        )
        monkeypatch.setattr(registry, "entry_points", lambda group: [no_pack])
        language_packs.cache_clear()
        with pytest.raises(OpencseError, match="is no language pack"):
            language_packs()
    finally:
        language_packs.cache_clear()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "Refunds are not allowed after the end of the month, and they were never paid in cash.",
            "en",
        ),
        (
            "Die Rückgabe ist nach dem Ende des Monats nicht mehr möglich, und wir haben sie nie bezahlt.",
            "de",
        ),
        (
            "Le remboursement n'est pas possible après la fin du mois, et nous ne payons pas en espèces.",
            "fr",
        ),
        (
            "El reembolso no es posible después del fin de mes, y nunca se paga en efectivo por las tiendas.",
            "es",
        ),
        ("x = 17 % 3; print(y)", None),
        ("", None),
    ],
)
def test_the_language_by_its_function_words(text, language) -> None:
    assert likely_language([text]) == language


@pytest.fixture(scope="module")
def parser():
    return load_parser()


def test_the_bundled_pipeline_is_small_and_parses_with_offsets_in_order(parser):
    assert (
        sum(file.stat().st_size for file in (ASSETS / "syntax").rglob("*") if file.is_file())
        <= 10 * 2**20
    )
    (tokens,) = parser.parse(["The old man reads a book."])
    root = next(token for i, token in enumerate(tokens) if token.head == i)
    assert (root.text, root.tag, root.pos, root.lemma) == ("reads", "VBZ", "VERB", "read")
    subject = next(token for token in tokens if token.relation == "nsubj")
    assert (subject.text, tokens[subject.head].text) == ("man", "reads")
    texts = ["  Two   spaces\tand a tab. ", "", "\n", "Don't!", "👍 مرحبا \x07 ok"]
    parsed = list(parser.parse(texts))
    for text, tokens in zip(texts, parsed, strict=True):
        assert all(
            text[token.start : token.end] == token.text and token.text.strip() for token in tokens
        )
        assert all(0 <= token.head < len(tokens) for token in tokens)
    assert [len(tokens) for tokens in parsed][1:3] == [0, 0]


def test_each_text_is_parsed_once_while_it_is_recent(monkeypatch):
    monkeypatch.setattr(syntax, "_KEPT", 4)
    parser, seen = SpacyParser("blank:en"), []
    pipe = parser._nlp.pipe
    monkeypatch.setattr(
        parser._nlp,
        "pipe",
        lambda texts, **options: pipe(seen.extend(t := list(texts)) or t, **options),
    )
    for texts in (["a", "b", "a"], ["b", "c"], [], ["d", "e", "a"], ["a", "b"], list("vwxyz")):
        assert [tokens[0].text for tokens in parser.parse(texts)] == texts
    assert seen == ["a", "b", "c", "d", "e", "b", *"vwxyz"]  # b was forgotten


def test_brackets_and_odd_spacing_are_left_out_with_offsets_kept(parser):
    text = "Ann (born 1970) is [as ever] a doctor."
    (tokens,) = parse_without_asides(parser, [text])
    assert [token.text for token in tokens] == ["Ann", "is", "a", "doctor", "."]
    assert all(text[token.start : token.end] == token.text for token in tokens)
    text = "\n The  dog\tsings .  "
    (tokens,) = parse_without_asides(parser, [text])
    assert [token.text for token in tokens] == ["The", "dog", "sings", "."]
    assert [text[token.start : token.end] for token in tokens] == ["The", "dog", "sings", "."]


class Counting:
    digest = "counting"

    def __init__(self):
        self.seen = []

    def parse(self, texts):
        for text in texts:
            self.seen.append(text)
            tag = "NOUN" if text.isalpha() else "PUNCT"
            yield (
                Token(
                    text=text,
                    start=0,
                    end=len(text),
                    lemma=text,
                    tag="",
                    pos=tag,
                    head=0,
                    relation="ROOT",
                ),
            )


@pytest.mark.parametrize("make", [tiny_bert, tiny_roberta])
def test_static_lexicon(tmp_path, make):
    tokenizer = AutoTokenizer.from_pretrained(make(tmp_path / "model"))
    first = Counting()
    tags = static_lexicon(tokenizer, first)
    assert len(tags) == len(tokenizer)
    assert all((tags[i] == "") == (i in tokenizer.all_special_ids) for i in range(len(tags)))
    for entry, i in tokenizer.get_vocab().items():
        if entry.startswith("##"):
            assert tags[i] == "X"
    assert tags[tokenizer.convert_tokens_to_ids("dog" if make is tiny_bert else "Ġdog")] == "NOUN"
    second = Counting()
    assert static_lexicon(tokenizer, second) == tags
    assert first.seen
    assert not second.seen  # read from the cache


def test_a_blank_pipeline_has_words_alone_and_an_unknown_one_is_named() -> None:
    (tokens,) = load_parser("blank:de").parse(["Er endet am 3. Mai 2021."])
    assert [token.text for token in tokens] == ["Er", "endet", "am", "3.", "Mai", "2021", "."]
    assert (tokens[-2].start, tokens[-2].end, tokens[-1].start, tokens[-1].end) == (19, 23, 23, 24)
    assert {token.tag for token in tokens} == {""}
    with pytest.raises(OpencseError, match="no language 'tlh'"):
        load_parser("blank:tlh")
    with pytest.raises(OpencseError, match="no_such_pipeline"):
        load_parser("no_such_pipeline")


@pytest.mark.parametrize("config", ["", "nonsense", "[nlp]\nlang = 3\npipeline = [1]\n"])
def test_a_folder_that_is_no_pipeline_is_one_line(tmp_path, config) -> None:
    (tmp_path / "config.cfg").write_text(config)
    (tmp_path / "meta.json").write_text('{"lang": "en"}')
    with pytest.raises(
        OpencseError, match=r"pipeline .* (cannot be loaded|has no tagger)|no spaCy pipeline"
    ):
        syntax.SpacyParser(str(tmp_path))
