"""Views: sentences related to a given sentence, and the builder that writes columns of them for a corpus.

| kind | class | builds | source |
|---|---|---|---|
| `negation` | `Negation` | a contradiction: the main clause negated, or its negation removed | OssCSE §4, SNCSE |
| `antonym_swap` | `AntonymSwap` | a contradiction: one word replaced by its opposite | |
| `negative_word` | `NegativeWord` | a contradiction: never, nobody, no, failed to, or their opposites | |
| `role_swap` | `RoleSwap` | a contradiction: subject and object exchanged | |
| `role_pair` | `RolePairs` | the same roles in other words, and the roles exchanged | |
| `number_swap` | `NumberSwap` | a contradiction: another number, year or amount | |
| `entity_swap` | `EntitySwap` | a contradiction: another name of the same kind | |
| `phrase_swap` | `PhraseSwap` | the same words with another meaning: two phrases exchanged | after PAWS |
| `negated_antonym` | `NegatedAntonym` | a paraphrase: the opposite, negated | |
| `antonym_quadruple` | `AntonymQuadruple` | a paraphrase and two contradictions of the same predicate | |
| `claim` | `Claim` | quantifiers, comparatives, conditions, amounts: the same, the opposite, and another one | |
| `passive` | `Passive` | a paraphrase: the other voice | |
| `reordering` | `Reordering` | a paraphrase: an adverbial moved, or conjuncts exchanged | |
| `question` | `Question` | a question that the sentence answers | |
| `topic_question` | `TopicQuestion` | a short question about something that it mentions | |
| `keywords` | `Keywords` | the sentence as a keyword query | |
| `passage` | `Passage` | the sentence, or a view of it, within a passage of neighbouring sentences | |
| `main_clause` | `MainClause` | the main clause of a long sentence | |
| `back_translation` | `BackTranslation` | a paraphrase: translation to a pivot and back | OssCSE §4, DebCSE §4.2 |
| `candidate_table` | `CandidateTable` | a paraphrase from a table of candidates | OssCSE Appendix A |
| `llm` | `PromptedLLM` | the answer of a prompted language model | SAN Table 12 |
| `substitution` | `Substitution` | a syntactically aligned negative | SAN §3.1 |
| `debiased_negatives` | `DebiasedNegatives` | a weighted draw from sentences of the corpus | DebCSE §4.1 |
| `debiased_positives` | `DebiasedPositives` | a weighted draw from paraphrases | DebCSE §4.2 |
| `hard_negatives` | `HardNegatives` | the nearest sentences of the corpus, by rank, window or margin | |
| `next_sentence` | `NextSentence` | the sentence that follows in the corpus | DiffCSE §5 |
| `word_repetition` | `WordRepetition` | the sentence with some words repeated | ESimCSE |
| `span_mask` | `SpanMask` | the sentence with a span of words masked | ArcCSE |
| `insertion`, `word_substitution`, `deletion`, `random` | `Insertion`, … | a random change | OssCSE §3.2 |

A specification is a small frozen dataclass with the options of a kind; `spec.open()` loads models and returns a
constructor, which maps rows to views.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from opencse.foundation.lazy import Kinds, public_names

if TYPE_CHECKING:
    from opencse.text.english.claims import Claim
    from opencse.text.english.entities import EntitySwap, NumberSwap
    from opencse.text.english.negation import Negation
    from opencse.text.english.negative_word import NegativeWord
    from opencse.text.english.order import Reordering
    from opencse.text.english.phrases import PhraseSwap
    from opencse.text.english.predicates import AntonymQuadruple, AntonymSwap, NegatedAntonym
    from opencse.text.english.questions import Keywords, Question, TopicQuestion
    from opencse.text.english.roles import RolePairs, RoleSwap
    from opencse.text.english.statements import MainClause
    from opencse.text.english.transitive import Passive
    from opencse.text.generated.back_translation import BackTranslation
    from opencse.text.generated.candidate_table import CandidateTable
    from opencse.text.generated.likely_words import Insertion, WordSubstitution
    from opencse.text.generated.prompted_llm import PromptedLLM
    from opencse.text.generated.substitution import Substitution
    from opencse.text.mined import DebiasedNegatives, DebiasedPositives, HardNegatives
    from opencse.text.perturbed.document_order import NextSentence, Passage
    from opencse.text.perturbed.random_changes import Deletion, RandomSentence, SpanMask, WordRepetition
    from opencse.text.views.builder import build_views
    from opencse.text.views.constructor import BuiltView, Constructor, ConstructorSpec, SourceRow

CONSTRUCTORS: MutableMapping[str, type[ConstructorSpec]] = Kinds(
    {
        "negation": "opencse.text.english.negation:Negation",
        "back_translation": "opencse.text.generated.back_translation:BackTranslation",
        "candidate_table": "opencse.text.generated.candidate_table:CandidateTable",
        "llm": "opencse.text.generated.prompted_llm:PromptedLLM",
        "substitution": "opencse.text.generated.substitution:Substitution",
        "phrase_swap": "opencse.text.english.phrases:PhraseSwap",
        "main_clause": "opencse.text.english.statements:MainClause",
        "antonym_swap": "opencse.text.english.predicates:AntonymSwap",
        "negated_antonym": "opencse.text.english.predicates:NegatedAntonym",
        "negative_word": "opencse.text.english.negative_word:NegativeWord",
        "role_swap": "opencse.text.english.roles:RoleSwap",
        "role_pair": "opencse.text.english.roles:RolePairs",
        "antonym_quadruple": "opencse.text.english.predicates:AntonymQuadruple",
        "claim": "opencse.text.english.claims:Claim",
        "passive": "opencse.text.english.transitive:Passive",
        "number_swap": "opencse.text.english.entities:NumberSwap",
        "entity_swap": "opencse.text.english.entities:EntitySwap",
        "reordering": "opencse.text.english.order:Reordering",
        "question": "opencse.text.english.questions:Question",
        "topic_question": "opencse.text.english.questions:TopicQuestion",
        "keywords": "opencse.text.english.questions:Keywords",
        "passage": "opencse.text.perturbed.document_order:Passage",
        "word_repetition": "opencse.text.perturbed.random_changes:WordRepetition",
        "span_mask": "opencse.text.perturbed.random_changes:SpanMask",
        "insertion": "opencse.text.generated.likely_words:Insertion",
        "word_substitution": "opencse.text.generated.likely_words:WordSubstitution",
        "deletion": "opencse.text.perturbed.random_changes:Deletion",
        "random": "opencse.text.perturbed.random_changes:RandomSentence",
        "next_sentence": "opencse.text.perturbed.document_order:NextSentence",
        "debiased_negatives": "opencse.text.mined.debiased_negatives:DebiasedNegatives",
        "debiased_positives": "opencse.text.mined.debiased_positives:DebiasedPositives",
        "hard_negatives": "opencse.text.mined.hard_negatives:HardNegatives",
    }
)
"""The specification of each kind, by its name in a recipe."""

__all__ = [
    "CONSTRUCTORS",
    "AntonymQuadruple",
    "AntonymSwap",
    "BackTranslation",
    "BuiltView",
    "CandidateTable",
    "Claim",
    "Constructor",
    "ConstructorSpec",
    "DebiasedNegatives",
    "DebiasedPositives",
    "Deletion",
    "EntitySwap",
    "HardNegatives",
    "Insertion",
    "Keywords",
    "MainClause",
    "NegatedAntonym",
    "Negation",
    "NegativeWord",
    "NextSentence",
    "NumberSwap",
    "Passage",
    "Passive",
    "PhraseSwap",
    "PromptedLLM",
    "Question",
    "RandomSentence",
    "Reordering",
    "RolePairs",
    "RoleSwap",
    "SourceRow",
    "SpanMask",
    "Substitution",
    "TopicQuestion",
    "WordRepetition",
    "WordSubstitution",
    "build_views",
]

__getattr__ = public_names(__name__)
