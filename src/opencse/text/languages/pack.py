"""A language pack: the grammar rules of one language by the kind of view; one for languages that have no rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from opencse.text.english.entities import NumberSwap
from opencse.text.english.grammar_view import GrammarView
from opencse.text.syntax import BUNDLED, Token
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow

_COUNT = re.compile(r"[1-9]\d{0,3}")  # a count in digits


@dataclass(frozen=True, kw_only=True)
class LanguagePack:
    """The grammar rules of one language.

    Attributes:
        code: ISO 639-1 code of the language.
        name: English name of the language.
        rules: The class that builds each kind of view in this language: the kind's own, or a subclass with another
            `rewrite`. A kind that needs grammar and is not listed gives null for every sentence.
        syntax: The pipeline that tags the sentences, as for `opencse.text.syntax.load_parser`.
        prose: A sentence of prose, which `opencse check` may rewrite: no markup, formula, path, list or question.
        leaves_open: By kind of view, what the unchanged beginning of a sentence must not contain if `opencse check`
            takes the view for a contradiction: after "if" and "may", both versions can be true.
        unfit: By kind of view, what the whole sentence must not contain for that, or for a view that says the same.
        opposites_reworded: Whether `opencse check` takes an opposite for a contradiction only if the opposite can also
            be negated; the word is then the predicate, in its usual sense.
        opposed_words: Returns the words of a text that have an opposite, with the opposites: sentences are sampled
            evenly over them (`opencse.recipes.rows.sampling`).
        statement: Returns a text if such a word is its predicate, or a sentence made of it in which it is; None if
            there is none.
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

    def localised(self, spec: ConstructorSpec) -> ConstructorSpec:
        """Return the specification that builds the same kind of view in this language, with the same options.

        Views that need no grammar stay as they are.
        """
        if not isinstance(spec, GrammarView):
            return spec
        rule = self.rules.get(spec.kind)
        if rule is None:
            return NoRule(of=spec.of, parts=spec.parts)
        if isinstance(spec, rule):  # `opencse check` has narrower forms of the English kinds
            rule = type(spec)
        return rule(**{**vars(spec), "syntax": self.syntax if spec.syntax == BUNDLED else spec.syntax})

    def localise(self, specs: Mapping[str, ConstructorSpec]) -> dict[str, ConstructorSpec]:
        """Return the specifications of a recipe's `[build]` for this language."""
        return {name: self.localised(spec) for name, spec in specs.items()}


@dataclass(frozen=True, kw_only=True)
class NoRule(ConstructorSpec):
    """A view for which a language has no rule: it is null for every sentence.

    Attributes:
        parts: Endings of the columns, if the kind builds several.
    """

    kind: ClassVar[str] = "no_rule"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}
    digest: ClassVar[str] = ""

    parts: tuple[str, ...] = ()

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of the kind that it stands for."""
        return tuple(f"{name}_{part}" for part in self.parts) or (name,)

    def open(self, *, seed: int = 0, prepared: Any = None) -> NoRule:
        """Return itself: there is nothing to load."""
        return self

    def __call__(self, rows: Sequence[SourceRow]) -> list[Any]:
        """Return a null for each row and column."""
        empty = BuiltView(text=None, rule="no rule in this language", scores={"mer": None})
        return [[empty] * len(self.parts) if self.parts else empty for _ in rows]


@dataclass(frozen=True, kw_only=True)
class CountSwap(NumberSwap):
    """Change one number of up to four digits before a word in small letters: "12 salles".

    It holds for any language with spaces between words.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the counts."""
        pairs = [(i, tokens[i + 1].text) for i in super().candidates(text, tokens) if i + 1 < len(tokens)]
        return [i for i, after in pairs if _COUNT.fullmatch(tokens[i].text) and after.isalpha() and after.islower()]
