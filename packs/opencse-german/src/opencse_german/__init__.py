"""The language pack of German: rules over closed classes of words, which need no trained pipeline."""

from __future__ import annotations

import re

from opencse.views.constructor import ConstructorSpec
from opencse.views.languages.german.keywords import GermanKeywords
from opencse.views.languages.german.names import GermanEntitySwap
from opencse.views.languages.german.negation import GermanNegation
from opencse.views.languages.german.negative_word import GermanNegativeWord
from opencse.views.languages.german.numbers import GermanNumberSwap
from opencse.views.languages.german.opposites import (
    GermanAntonymQuadruple,
    GermanAntonymSwap,
    GermanNegatedAntonym,
    opposed_words,
)
from opencse.views.languages.german.order import GermanQuestion, GermanReordering
from opencse.views.languages.pack import LanguagePack

_RULES: tuple[type[ConstructorSpec], ...] = (
    GermanNegation,
    GermanNegativeWord,
    GermanAntonymSwap,
    GermanNegatedAntonym,
    GermanAntonymQuadruple,
    GermanNumberSwap,
    GermanEntitySwap,
    GermanReordering,
    GermanQuestion,
    GermanKeywords,
)
_POSSIBLE = re.compile(
    r"\b(?:kann|können|konnte\w*|darf|dürfen|könnte\w*|dürfte\w*|ermöglich\w*|erlaub\w*|hilft|helfen) [^.,;]*$"
    r"|\b(?:wenn|falls|sobald|sofern|solange|bis|ob|bevor|während) [^,;]*$",
    re.IGNORECASE,
)
"""The beginning of a sentence up to a word that stands for what is possible, permitted or a condition."""

GERMAN = LanguagePack(
    code="de",
    name="German",
    rules={rule.kind: rule for rule in _RULES},
    syntax="blank:de",
    leaves_open=dict.fromkeys(("antonym_swap", "number_swap", "entity_swap"), (_POSSIBLE,)),
    opposites_reworded=True,
    opposed_words=opposed_words,
)
