"""Languages: the packs of grammar rules, and the one that fits the texts.

English comes with opencse. Any other pack is a `LanguagePack` that an installed package names in its entry points:

    [project.entry-points."opencse.languages"]
    fr = "my_package.french:FRENCH"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

from opencse.foundation.errors import OpencseError
from opencse.text.english.grammar_view import GrammarView
from opencse.text.language import LANGUAGES, likely_language
from opencse.text.languages.english import ENGLISH
from opencse.text.languages.pack import CountSwap, LanguagePack, NoRule
from opencse.text.views.constructor import ConstructorSpec

__all__ = ["AUTO", "ENGLISH", "ChosenLanguage", "LanguagePack", "NoRule", "choose_language", "language_packs"]

AUTO = "auto"
"""The setting that leaves the choice of the language to the texts."""

_PACKAGES = {"de": "opencse-german"}
"""The packages of this project's own packs, which are installed separately, by code."""


@cache
def language_packs() -> Mapping[str, LanguagePack]:
    """Return the packs by the code of their language: English, and those of installed packages."""
    packs = {ENGLISH.code: ENGLISH}
    for entry in entry_points(group="opencse.languages"):
        pack = entry.load()
        if not isinstance(pack, LanguagePack):
            raise OpencseError(f"the entry point {entry.value} is no language pack", f"Uninstall {entry.dist}.")
        packs[pack.code] = pack
    return packs


@dataclass(frozen=True)
class ChosenLanguage:
    """The rules that are used for some texts.

    Attributes:
        pack: The rules.
        found: Code of the language that the texts look like; None for unknown.
        asked: Whether the user named the language.
    """

    pack: LanguagePack
    found: str | None
    asked: bool

    def line(self, specs: Mapping[str, ConstructorSpec]) -> str:
        """Return one line about the language of the texts and the views that are left out for it.

        Args:
            specs: The views that are built, by name. The line is empty if none of them needs grammar.
        """
        if not any(isinstance(spec, GrammarView) for spec in specs.values()):
            return ""
        looks = f"the texts look {LANGUAGES[self.found]}" if self.found else "the texts look like no known language"
        if self.asked:
            looks = f"the language is set to {self.pack.name}"
        if self.pack.code in language_packs():
            line = f"{looks}: sentences are rewritten by rules for {self.pack.name}"
        elif package := _PACKAGES.get(self.pack.code):
            source = f"`pip install {package}`, or packs/{package} in the repository of opencse"
            line = f"{looks}, whose rules are not installed ({source}): only numbers are changed"
        else:
            line = f"{looks}, for which there are no rules: only numbers are changed"
        lacking = [name for name, spec in self.pack.localise(specs).items() if isinstance(spec, NoRule)]
        return f"{line}; left out: {', '.join(lacking)}" if lacking else line


def choose_language(language: str, texts: Iterable[str], syntax: str = "") -> ChosenLanguage:
    """Return the rules for some texts.

    Texts in a language without a pack get a rule for numbers only. Texts in no known language (lists, tables, product
    names) get the rules for English.

    Args:
        language: Code of a language, or `AUTO`.
        texts: Some of the texts; a hundred sentences are enough.
        syntax: A spaCy pipeline for this language, by name or folder; by default the pack's own.

    Raises:
        OpencseError: The language is unknown.
    """
    likely = likely_language(texts)
    code = (likely or ENGLISH.code) if language == AUTO else language
    pack = language_packs().get(code)
    if pack is None:
        if code not in LANGUAGES:
            known = ", ".join([AUTO, *language_packs()])
            raise OpencseError(f"no rules for the language {code!r}", f"Choose one of {known}, or write a pack for it.")
        pack = LanguagePack(code=code, name=LANGUAGES[code], rules={CountSwap.kind: CountSwap}, syntax="blank:xx")
    if syntax:
        pack = replace(pack, syntax=syntax)
    return ChosenLanguage(pack, likely, asked=language != AUTO)
