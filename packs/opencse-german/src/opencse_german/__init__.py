"""The language pack of German: rules over closed classes of words, without a trained pipeline."""

from __future__ import annotations

import re

from opencse.text.languages import LanguagePack
from opencse_german.keywords import GermanKeywords
from opencse_german.names import GermanEntitySwap
from opencse_german.negation import GermanNegation
from opencse_german.negative_word import GermanNegativeWord
from opencse_german.numbers import GermanNumberSwap
from opencse_german.opposites import (
    GermanAntonymQuadruple,
    GermanAntonymSwap,
    GermanNegatedAntonym,
    opposed_words,
)
from opencse_german.order import GermanQuestion, GermanReordering

_POSSIBLE = re.compile(
    r"\b(?:kann|können|konnte\w*|darf|dürfen|könnte\w*|dürfte\w*|ermöglich\w*|erlaub\w*|hilft|helfen) [^.,;]*$"
    r"|\b(?:wenn|falls|sobald|sofern|solange|bis|ob|bevor|während) [^,;]*$",
    re.IGNORECASE,
)
"""A beginning of a sentence that names what is possible, permitted or a condition."""

GERMAN = LanguagePack(
    code="de",
    name="German",
    rules={
        "negation": GermanNegation,
        "negative_word": GermanNegativeWord,
        "antonym_swap": GermanAntonymSwap,
        "negated_antonym": GermanNegatedAntonym,
        "antonym_quadruple": GermanAntonymQuadruple,
        "number_swap": GermanNumberSwap,
        "entity_swap": GermanEntitySwap,
        "reordering": GermanReordering,
        "question": GermanQuestion,
        "keywords": GermanKeywords,
    },
    syntax="blank:de",
    leaves_open=dict.fromkeys(("antonym_swap", "number_swap"), (_POSSIBLE,)),
    opposites_reworded=True,
    opposed_words=opposed_words,
)
