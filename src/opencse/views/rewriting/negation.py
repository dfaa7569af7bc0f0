"""Negation: the sentence with its main clause negated, or freed of its negation (OssCSE §4, SNCSE).

`sound` (default) edits the original string: "not" after a form of be, have, do or a modal, do-support elsewhere,
existing negation removed, null where no rule is safe. `faithful` follows SNCSE's published rules and joins tokens
with spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from opencse.syntax.asides import parse_without_asides
from opencse.syntax.tokens import Token
from opencse.views.constructor import ConstructorSpec, Row, View, bundle_digest, row_random, with_error_rate
from opencse.views.rewriting import negation_rules, sncse_negation


@dataclass(frozen=True, kw_only=True)
class Negation(ConstructorSpec):
    """Negate the main clause.

    Attributes:
        mode: "sound", or "faithful" for SNCSE's rules (then the options below do not count).
        by: "not", "antonym", or one of them where the other cannot ("not-antonym", "antonym-not").
        remove: Whether a sentence that is negative already loses its negation; if not, it gives null.
        contract: Write "isn't", "doesn't".
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "negation"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    mode: Literal["sound", "faithful"] = "sound"
    by: Literal["not", "antonym", "not-antonym", "antonym-not"] = "not"
    remove: bool = True
    contract: bool = False
    syntax: str = "syntax"

    def __post_init__(self) -> None:
        if self.mode == "faithful" and (self.by != "not" or self.contract or not self.remove):
            raise ValueError("mode 'faithful' takes no options: drop by, contract and remove, or set mode to 'sound'")

    def open(self, *, seed: int = 0, workers: int = 1) -> Negator:
        """Load the parser, and the antonyms if they are asked for."""
        return Negator(self, seed=seed)


class Negator:
    """An opened `Negation`."""

    def __init__(self, spec: Negation, *, seed: int = 0) -> None:
        from opencse.syntax import load_parser
        from opencse.views.rewriting.antonyms import Antonyms

        self.spec = spec
        self._seed = seed
        self._parser = load_parser(spec.syntax)
        self._antonyms = Antonyms() if "antonym" in spec.by else None
        self.digest = bundle_digest(self._parser.digest, self._antonyms.digest if self._antonyms else "")

    def __call__(self, rows: Sequence[Row]) -> list[View]:
        """Negate each row's text."""
        if self.spec.mode == "faithful":
            parsed = self._parser.parse([row.text for row in rows])
        else:
            parsed = parse_without_asides(self._parser, [row.text for row in rows])
        return with_error_rate(rows, [self._one(row, tokens) for row, tokens in zip(rows, parsed, strict=True)])

    def _one(self, row: Row, tokens: tuple[Token, ...]) -> tuple[str | None, str]:
        if self.spec.mode == "faithful":
            return sncse_negation.negate(tokens)
        rule = "empty"
        for way in self.spec.by.split("-"):
            if way == "not":
                text, rule = negation_rules.negate(
                    row.text, tokens, remove=self.spec.remove, contract=self.spec.contract
                )
            else:
                assert self._antonyms is not None
                text, rule = self._antonyms.negate(row.text, tokens, row_random(self._seed, "antonym", row))
            if text is not None:
                return text, rule
        return None, rule
