"""Losses as pure functions of named embeddings, one file for each family."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from opencse.foundation.lazy import Kinds, lazy_names

if TYPE_CHECKING:
    from opencse.losses.alternating_normalization import AlternatingNormalizationLoss
    from opencse.losses.base import (
        Context,
        Embeddings,
        Loss,
        LossBuildContext,
        LossModule,
        LossOutput,
        Objective,
        Processes,
        TokenOutputs,
    )
    from opencse.losses.contrastive_tension import ContrastiveTensionLoss
    from opencse.losses.denoising_autoencoder import DenoisingAutoencoderLoss
    from opencse.losses.distillation import (
        DistillationLoss,
        ListMLELoss,
        ListNetLoss,
        RankingConsistencyLoss,
    )
    from opencse.losses.forgetting import MaskedLanguageModelLoss, RecallLoss
    from opencse.losses.info_nce import (
        AngularInfoNCELoss,
        InfoNCELoss,
        MarginInfoNCELoss,
        TwoWayMarginLoss,
    )
    from opencse.losses.information_aggregation import InformationAggregationLoss
    from opencse.losses.mutual_information import MutualInformationLoss
    from opencse.losses.negatives import (
        DCLRLoss,
        FalseNegatives,
        MomentumContrastiveLoss,
        NoiseNegatives,
    )
    from opencse.losses.nt_xent import NTXentLoss
    from opencse.losses.peer_contrastive import PeerContrastiveLoss
    from opencse.losses.rank_similarity import RankSimilarityLoss
    from opencse.losses.replaced_tokens import ReplacedTokenDetectionLoss
    from opencse.losses.self_guided import SelfGuidedLoss

LOSSES: MutableMapping[str, type[Loss]] = Kinds(
    {
        "info_nce": "opencse.losses.info_nce:InfoNCELoss",
        "margin_info_nce": "opencse.losses.info_nce:MarginInfoNCELoss",
        "angular_info_nce": "opencse.losses.info_nce:AngularInfoNCELoss",
        "dclr": "opencse.losses.negatives:DCLRLoss",
        "momentum_contrastive": "opencse.losses.negatives:MomentumContrastiveLoss",
        "two_way_margin": "opencse.losses.info_nce:TwoWayMarginLoss",
        "alternating_normalization": "opencse.losses.alternating_normalization:AlternatingNormalizationLoss",
        "recall": "opencse.losses.forgetting:RecallLoss",
        "replaced_token_detection": "opencse.losses.replaced_tokens:ReplacedTokenDetectionLoss",
        "masked_language_model": "opencse.losses.forgetting:MaskedLanguageModelLoss",
        "nt_xent": "opencse.losses.nt_xent:NTXentLoss",
        "contrastive_tension": "opencse.losses.contrastive_tension:ContrastiveTensionLoss",
        "self_guided": "opencse.losses.self_guided:SelfGuidedLoss",
        "peer_contrastive": "opencse.losses.peer_contrastive:PeerContrastiveLoss",
        "information_aggregation": (
            "opencse.losses.information_aggregation:InformationAggregationLoss"
        ),
        "mutual_information": "opencse.losses.mutual_information:MutualInformationLoss",
        "denoising_autoencoder": "opencse.losses.denoising_autoencoder:DenoisingAutoencoderLoss",
        "rank_similarity": "opencse.losses.rank_similarity:RankSimilarityLoss",
        "ranking_consistency": "opencse.losses.distillation:RankingConsistencyLoss",
        "list_net": "opencse.losses.distillation:ListNetLoss",
        "list_mle": "opencse.losses.distillation:ListMLELoss",
    },
    "opencse.losses",
)
"""Loss classes by `kind`, their name in recipes."""

__all__ = [
    "LOSSES",
    "AlternatingNormalizationLoss",
    "AngularInfoNCELoss",
    "Context",
    "ContrastiveTensionLoss",
    "DCLRLoss",
    "DenoisingAutoencoderLoss",
    "DistillationLoss",
    "Embeddings",
    "FalseNegatives",
    "InfoNCELoss",
    "InformationAggregationLoss",
    "ListMLELoss",
    "ListNetLoss",
    "Loss",
    "LossBuildContext",
    "LossModule",
    "LossOutput",
    "MarginInfoNCELoss",
    "MaskedLanguageModelLoss",
    "MomentumContrastiveLoss",
    "MutualInformationLoss",
    "NTXentLoss",
    "NoiseNegatives",
    "Objective",
    "PeerContrastiveLoss",
    "Processes",
    "RankSimilarityLoss",
    "RankingConsistencyLoss",
    "RecallLoss",
    "ReplacedTokenDetectionLoss",
    "SelfGuidedLoss",
    "TokenOutputs",
    "TwoWayMarginLoss",
]

__getattr__ = lazy_names(__name__)
