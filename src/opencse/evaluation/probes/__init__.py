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
from opencse.evaluation.probes.length import LengthBias, LengthProbe
from opencse.evaluation.probes.pair_retrieval import Retrieval, RetrievalProbe
from opencse.evaluation.probes.probe_data import ProbeData, ProbeSets, by_subset, load_probe_data, load_probe_sts
from opencse.evaluation.probes.probe_suite import ProbeScores, ProbeSuite, probe_encoders
from opencse.evaluation.probes.sentences import KINDS, ProbeSentences, packaged_sentences, read_sentences
from opencse.evaluation.probes.splits import SplitAverage, SplitProbe, SplitResult, SplitResults
from opencse.evaluation.probes.suppression import Suppression, SuppressionProbe
from opencse.evaluation.probes.training_pairs import PairKind, TrainingPairsProbe
from opencse.evaluation.probes.transformations import TransformationProbe, Transformations
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
