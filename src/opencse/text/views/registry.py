"""All kinds of views by their name in a recipe, and their public names in one place.

A specification is a small frozen dataclass with the options of a kind; `spec.open()` loads models and returns a
constructor, which maps rows to views. `build_views` writes columns of them for a corpus.
"""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from typing import Any

from opencse.foundation.lazy import Kinds
from opencse.text.views.constructor import BuiltView, Constructor, ConstructorSpec, SourceRow

_CLASSES = {
    "negation": "opencse.text.english.negation:Negation",
    "back_translation": "opencse.text.generated.paraphrases:BackTranslation",
    "candidate_table": "opencse.text.generated.paraphrases:CandidateTable",
    "substitution": "opencse.text.generated.substitution:Substitution",
    "phrase_swap": "opencse.text.english.order:PhraseSwap",
    "main_clause": "opencse.text.english.clause:MainClause",
    "antonym_swap": "opencse.text.english.one_word:AntonymSwap",
    "negated_antonym": "opencse.text.english.predicates:NegatedAntonym",
    "negative_word": "opencse.text.english.one_word:NegativeWord",
    "role_pair": "opencse.text.english.roles:RolePairs",
    "antonym_quadruple": "opencse.text.english.predicates:AntonymQuadruple",
    "claim": "opencse.text.english.claims:Claim",
    "passive": "opencse.text.english.transitive:Passive",
    "number_swap": "opencse.text.english.claims:NumberSwap",
    "entity_swap": "opencse.text.english.claims:EntitySwap",
    "reordering": "opencse.text.english.order:Reordering",
    "question": "opencse.text.english.questions:Question",
    "topic_question": "opencse.text.english.questions:TopicQuestion",
    "keywords": "opencse.text.english.questions:Keywords",
    "passage": "opencse.text.perturbed:Passage",
    "span_mask": "opencse.text.perturbed:SpanMask",
    "insertion": "opencse.text.generated.likely_words:Insertion",
    "word_substitution": "opencse.text.generated.likely_words:WordSubstitution",
    "deletion": "opencse.text.perturbed:Deletion",
    "random": "opencse.text.perturbed:RandomSentence",
    "next_sentence": "opencse.text.perturbed:NextSentence",
    "debiased_negatives": "opencse.text.mined.debiased:DebiasedNegatives",
    "debiased_positives": "opencse.text.mined.debiased:DebiasedPositives",
    "hard_negatives": "opencse.text.mined.vectors:HardNegatives",
}

CONSTRUCTORS: MutableMapping[str, type[ConstructorSpec]] = Kinds(_CLASSES)
"""The specification of each kind, by its name in a recipe."""

_PLACES = {name: module for module, name in (place.split(":") for place in _CLASSES.values())}
_PLACES["build_views"] = "opencse.text.views.builder"

__all__ = ["CONSTRUCTORS", "BuiltView", "Constructor", "ConstructorSpec", "SourceRow", *_PLACES]


def __getattr__(name: str) -> Any:
    """Import the class of a kind, or the builder, when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(_PLACES[name]), name)
