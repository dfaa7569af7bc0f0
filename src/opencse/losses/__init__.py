"""Losses as pure functions of named embeddings, one file for each family."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from opencse.foundation.lazy import Kinds, public_names

if TYPE_CHECKING:
    from opencse.losses.alternating_normalization import AlternatingNormalization
    from opencse.losses.contrastive import Contrastive
    from opencse.losses.distillation import Distillation, ListMLE, ListNet
    from opencse.losses.false_negatives import FalseNegatives, NoiseNegatives
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

TERMS: MutableMapping[str, type[Term]] = Kinds(
    {
        "contrastive": "opencse.losses.contrastive:Contrastive",
        "momentum_contrastive": "opencse.losses.momentum:MomentumContrastive",
        "two_way_margin": "opencse.losses.two_way_margin:TwoWayMargin",
        "alternating_normalization": "opencse.losses.alternating_normalization:AlternatingNormalization",
        "recall": "opencse.losses.recall:Recall",
        "replaced_token_detection": "opencse.losses.replaced_tokens:ReplacedTokenDetection",
        "masked_language_model": "opencse.losses.masked_language_model:MaskedLanguageModel",
        "ranking_consistency": "opencse.losses.ranking_consistency:RankingConsistency",
        "list_net": "opencse.losses.distillation:ListNet",
        "list_mle": "opencse.losses.distillation:ListMLE",
        "pair_preserving": "opencse.losses.pair_preserving:PairPreserving",
        "similarity_preserving": "opencse.losses.preservation:SimilarityPreserving",
        "similarity_bound": "opencse.losses.similarity_bound:SimilarityBound",
        "similarity_order": "opencse.losses.similarity_order:SimilarityOrder",
    }
)
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

__getattr__ = public_names(__name__)
