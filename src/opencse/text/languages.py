"""Languages: which one the texts are in, the packs of grammar rules, and the pack that fits.

English comes with opencse. Any other pack is a `LanguagePack` that an installed package names in
its entry points:

    [project.entry-points."opencse.languages"]
    fr = "my_package.french:FRENCH"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import error_reason
from opencse.text.documents import LANGUAGES
from opencse.text.english.exclusive import CountSwap
from opencse.text.english.limits import BECAUSE, DATED_EVENT, ONLY, POSSIBLE, PROSE, SOME, statement
from opencse.text.english.opposites import opposed_adjectives, opposed_verbs
from opencse.text.english.parse import GrammarView
from opencse.text.syntax import BUNDLED, Token
from opencse.text.views.registry import SHIPPED_KINDS, VIEWS, OpenedView, View, ViewText

ENOUGH_TEXTS = 500
"""Number of a corpus's sentences from which its language is recognized."""


@dataclass(frozen=True, kw_only=True)
class LanguagePack:
    """The grammar rules of one language.

    Attributes:
        code: ISO 639-1 code of the language.
        name: English name of the language.
        rules: The class that builds each kind of view in this language: the kind's own, or a
            subclass with another `rewrite`. A kind that needs grammar and is not listed gives null
            for every sentence.
        syntax: The pipeline that tags the sentences, as for `opencse.text.syntax.load_parser`.
        prose: A sentence of prose, which `opencse check` may rewrite: no markup, formula, path,
            list or question.
        leaves_open: By kind of view, what the unchanged beginning of a sentence must not contain if
            `opencse check` takes the view for a contradiction: after "if" and "may", both versions
            can be true.
        unfit: By kind of view, what the sentence must not contain if `opencse check` takes the view
            for a contradiction, or for a paraphrase.
        opposites_reworded: Whether `opencse check` takes an opposite for a contradiction only if
            the opposite can also be negated; the word is then the predicate, in its usual sense.
        opposed_words: Returns the words of a text that have an opposite, with the opposites:
            sentences are sampled evenly over them (`opencse.recipes.rows.sentence_sample`).
        statement: Returns a text if such a word is its predicate, or a sentence made from the text
            in which it is; None if there is none.
    """

    code: str
    name: str
    rules: Mapping[str, type[GrammarView]]
    syntax: str
    prose: re.Pattern[str] = re.compile(r"[^\W_a-z][\w\s,.'’‘“”„»«\"()%$€£°&–—-]*[.!][\"”“»’)]?")
    leaves_open: Mapping[str, tuple[re.Pattern[str], ...]] = field(default_factory=dict)
    unfit: Mapping[str, tuple[re.Pattern[str], ...]] = field(default_factory=dict)
    opposites_reworded: bool = False
    opposed_words: Callable[[str], Mapping[str, str]] = lambda text: {}
    statement: Callable[[str, Sequence[Token], str], str | None] = lambda text, tokens, word: text

    def localised(self, spec: View) -> View:
        """Return the view in this language, with the same options.

        Views that need no grammar stay as they are.
        """
        if not isinstance(spec, GrammarView):
            return spec
        if spec.kind not in SHIPPED_KINDS:
            # A view from outside the package has its own rules.
            return spec
        rule = self.rules.get(spec.kind)
        if rule is None:
            return _NoRule(of=spec.of, parts=spec.parts)
        if isinstance(spec, rule):
            # `opencse check` has narrower forms of the English kinds, which are kept.
            rule = type(spec)
        options = dict(vars(spec))
        if spec.syntax == BUNDLED:
            options["syntax"] = self.syntax
        return rule(**options)

    def localise(self, specs: Mapping[str, View]) -> dict[str, View]:
        """Return the views of a recipe's `[build]` for this language."""
        return {name: self.localised(spec) for name, spec in specs.items()}


@dataclass(frozen=True, kw_only=True)
class _NoRule(View):
    """A view for which a language has no rule: it is null for every sentence.

    Attributes:
        parts: Endings of the columns, if the kind builds several.
    """

    kind = "no_rule"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    parts: tuple[str, ...] = ()

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of the kind that it stands for."""
        if not self.parts:
            return (name,)
        return tuple(f"{name}_{part}" for part in self.parts)

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; there is nothing to load."""
        empty = ViewText(text=None, rule="no rule in this language", scores={"mer": None})
        view = [empty] * len(self.parts) if self.parts else empty
        return OpenedView(build=lambda rows: [view for _ in rows])


def _english_rules() -> dict[str, type[GrammarView]]:
    """Return the views of English grammar that come with the package."""
    rules = {}
    for kind in SHIPPED_KINDS:
        view = VIEWS[kind]
        if issubclass(view, GrammarView):
            rules[kind] = view
    return rules


ENGLISH = LanguagePack(
    code="en",
    name="English",
    rules=_english_rules(),
    syntax=BUNDLED,
    prose=PROSE,
    leaves_open={"negation": (SOME,), "antonym_swap": (SOME, POSSIBLE), "number_swap": (POSSIBLE,)},
    unfit={"negation": (ONLY, BECAUSE), "antonym_swap": (ONLY,), "negated_antonym": (DATED_EVENT,)},
    opposed_words=lambda text: opposed_adjectives(text) | opposed_verbs(text),
    statement=statement,
)


AUTO = "auto"
"""The setting that leaves the choice of the language to the texts."""

# This project's own packs, by code; they are installed separately.
_PACKAGES = {"de": "opencse-german"}


@cache
def language_packs() -> Mapping[str, LanguagePack]:
    """Return the packs by the code of their language: English, and those of installed packages."""
    packs = {ENGLISH.code: ENGLISH}
    for entry in entry_points(group="opencse.languages"):
        pack = _loaded_pack(entry)
        packs[pack.code] = pack
    return packs


def _loaded_pack(entry: EntryPoint) -> LanguagePack:
    """Return the pack of an entry point.

    Raises:
        OpencseError: It cannot be imported, ends the process, or is no pack.
    """
    package = "the package" if entry.dist is None else entry.dist.name
    remedy = f"Update {package}, or uninstall it."
    try:
        pack = entry.load()
    except KeyboardInterrupt:
        raise
    # Also SystemExit, because a pack must not end the command.
    except BaseException as error:
        reason = f"{type(error).__name__}: {error_reason(error)}"
        raise OpencseError(
            f"the language pack {entry.value} of {package} cannot be imported ({reason})", remedy
        ) from error
    if not isinstance(pack, LanguagePack):
        raise OpencseError(
            f"the entry point {entry.value} of {package} is no language pack", remedy
        )
    if not (isinstance(pack.code, str) and isinstance(pack.rules, Mapping)):
        raise OpencseError(f"the language pack {entry.value} of {package} is broken", remedy)
    return pack


@dataclass(frozen=True)
class ChosenLanguage:
    """The rules that are used for the texts.

    Attributes:
        pack: The rules.
        found: Code of the language that the texts look like; None for unknown.
        asked: Whether the user named the language.
    """

    pack: LanguagePack
    found: str | None
    asked: bool

    def line(self, specs: Mapping[str, View]) -> str:
        """Return one line about the language of the texts and the views that it leaves out.

        Args:
            specs: The views that are built, by name. The line is empty if none of them needs
                grammar.
        """
        if not any(isinstance(spec, GrammarView) for spec in specs.values()):
            return ""
        if self.asked:
            looks = f"the language is set to {self.pack.name}"
        elif self.found:
            looks = f"the texts look {LANGUAGES[self.found]}"
        else:
            looks = "the texts look like no known language"
        package = _PACKAGES.get(self.pack.code)
        if self.pack.code in language_packs():
            line = f"{looks}: sentences are rewritten by rules for {self.pack.name}"
        elif package:
            source = f"`pip install {package}`, or packs/{package} in the repository of opencse"
            line = f"{looks}, whose rules are not installed ({source}): only numbers are changed"
        else:
            line = f"{looks}, for which there are no rules: only numbers are changed"
        lacking = []
        for name, spec in self.pack.localise(specs).items():
            if isinstance(spec, _NoRule):
                lacking.append(name)
        if lacking:
            line += f"; left out: {', '.join(lacking)}"
        return line


def choose_language(language: str, likely: str | None) -> ChosenLanguage:
    """Return the rules for some texts.

    Texts in a language without a pack get a rule for numbers only. Texts in no known language
    (lists, tables, product names) get the English rules.

    Args:
        language: Code of a language, or `AUTO`.
        likely: The language that the texts look like (`likely_language`); None for unknown.

    Raises:
        OpencseError: The language is unknown.
    """
    code = language
    if language == AUTO:
        code = likely or ENGLISH.code
    pack = language_packs().get(code)
    if pack is None:
        if code not in LANGUAGES:
            codes = ", ".join([AUTO, *language_packs()])
            raise OpencseError(
                f"no rules for the language {code!r}",
                f"Choose one of {codes}, or write a pack for it.",
            )
        pack = LanguagePack(
            code=code, name=LANGUAGES[code], rules={CountSwap.kind: CountSwap}, syntax="blank:xx"
        )
    return ChosenLanguage(pack, likely, asked=language != AUTO)
