"""Losses as pure functions of named embeddings, one file for each family."""

from opencse.losses.alternating_normalization import AlternatingNormalization
from opencse.losses.contrastive import Contrastive
from opencse.losses.distillation import Distillation
from opencse.losses.false_negatives import FalseNegatives, NoiseNegatives
from opencse.losses.list_mle import ListMLE
from opencse.losses.list_net import ListNet
from opencse.losses.margin import Margin
from opencse.losses.masked_language_model import MaskedLanguageModel
from opencse.losses.momentum import MomentumContrastive
from opencse.losses.objective import Objective
from opencse.losses.pair_preserving import PairPreserving
from opencse.losses.preservation import SimilarityPreserving
from opencse.losses.ranking_consistency import RankingConsistency
from opencse.losses.recall import Recall
from opencse.losses.replaced_tokens import ReplacedTokenDetection
from opencse.losses.similarity_bound import SimilarityBound
from opencse.losses.similarity_order import SimilarityOrder
from opencse.losses.term import Context, Embeddings, LossOutput, Processes, Term, TermBuildContext, TermModule
from opencse.losses.two_way_margin import TwoWayMargin

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
    "LossOutput",
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
    "TermModule",
    "TwoWayMargin",
]
