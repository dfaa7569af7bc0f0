"""Probes of surface bias of any function "texts in, matrix out": does it follow wording instead of meaning?

| probe | source |
|---|---|
| `SplitProbe` | OssCSE Tables 2, 3 and 6 |
| `TransformationProbe` | OssCSE Figures 1 and 2 |
| `SuppressionProbe` | SAN Figure 4 |
| `TrainingPairsProbe` | DebCSE Figures 1 and 4, Tables 1 and 4 |
| `LengthProbe` | DebCSE §2.2 |
| `RetrievalProbe` | after DiffCSE Table 9 |
| `TripletProbe` | written for opencse (docs/data/development-sets.md) |
"""

from opencse.evaluation.probes.estimates import Estimate
from opencse.evaluation.probes.probe_data import (
    KINDS,
    ProbeData,
    ProbeSentences,
    ProbeSets,
    by_subset,
    load_probe_data,
    load_probe_sts,
    packaged_sentences,
    read_sentences,
)
from opencse.evaluation.probes.probe_suite import ProbeScores, ProbeSuite, probe_encoders
from opencse.evaluation.probes.scored_pairs import (
    LengthBias,
    LengthProbe,
    SplitAverage,
    SplitProbe,
    SplitResult,
    SplitResults,
    Suppression,
    SuppressionProbe,
)
from opencse.evaluation.probes.sentence_versions import (
    PairKind,
    Retrieval,
    RetrievalProbe,
    TrainingPairsProbe,
    TransformationProbe,
    Transformations,
)
from opencse.evaluation.probes.triplet_sets import TripletGroup, TripletProbe, TripletResult

__all__ = [
    "KINDS",
    "Estimate",
    "LengthBias",
    "LengthProbe",
    "PairKind",
    "ProbeData",
    "ProbeScores",
    "ProbeSentences",
    "ProbeSets",
    "ProbeSuite",
    "Retrieval",
    "RetrievalProbe",
    "SplitAverage",
    "SplitProbe",
    "SplitResult",
    "SplitResults",
    "Suppression",
    "SuppressionProbe",
    "TrainingPairsProbe",
    "TransformationProbe",
    "Transformations",
    "TripletGroup",
    "TripletProbe",
    "TripletResult",
    "by_subset",
    "load_probe_data",
    "load_probe_sts",
    "packaged_sentences",
    "probe_encoders",
    "read_sentences",
]
