"""Losses as pure functions of named embeddings, one file for each family."""

from opencse.objectives.alternating_normalization import AlternatingNormalization
from opencse.objectives.contrastive import Contrastive
from opencse.objectives.distillation import Distillation
from opencse.objectives.false_negatives import FalseNegatives, NoiseNegatives
from opencse.objectives.list_mle import ListMLE
from opencse.objectives.list_net import ListNet
from opencse.objectives.margin import Margin
from opencse.objectives.masked_language_model import MaskedLanguageModel
from opencse.objectives.momentum import MomentumContrastive
from opencse.objectives.objective import Objective
from opencse.objectives.pair_preserving import PairPreserving
from opencse.objectives.preservation import SimilarityPreserving
from opencse.objectives.ranking_consistency import RankingConsistency
from opencse.objectives.recall import Recall
from opencse.objectives.replaced_tokens import ReplacedTokenDetection
from opencse.objectives.similarity_bound import SimilarityBound
from opencse.objectives.similarity_order import SimilarityOrder
from opencse.objectives.term import Context, Embeddings, Processes, Term, TermBuildContext
from opencse.objectives.two_way_margin import TwoWayMargin

_TERM_CLASSES: tuple[type[Term], ...] = (
    Contrastive,
    MomentumContrastive,
    TwoWayMargin,
    AlternatingNormalization,
    Recall,
    ReplacedTokenDetection,
    MaskedLanguageModel,
    RankingConsistency,
    ListNet,
    ListMLE,
    PairPreserving,
    SimilarityPreserving,
    SimilarityBound,
    SimilarityOrder,
)
TERMS: dict[str, type[Term]] = {cls.kind: cls for cls in _TERM_CLASSES}
"""Term classes by `kind`, their name in recipes."""

__all__ = [
    "TERMS",
    "AlternatingNormalization",
    "Context",
    "Contrastive",
    "Distillation",
    "Embeddings",
    "FalseNegatives",
    "ListMLE",
    "ListNet",
    "Margin",
    "MaskedLanguageModel",
    "MomentumContrastive",
    "NoiseNegatives",
    "Objective",
    "PairPreserving",
    "Processes",
    "RankingConsistency",
    "Recall",
    "ReplacedTokenDetection",
    "SimilarityBound",
    "SimilarityOrder",
    "SimilarityPreserving",
    "Term",
    "TermBuildContext",
    "TwoWayMargin",
]
