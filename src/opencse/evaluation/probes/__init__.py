"""Probes of surface bias of any model: does it follow wording instead of meaning?

| probe | source |
|---|---|
| `split_results` | OssCSE Tables 2, 3 and 6 |
| `transformation_cosines` | OssCSE Figures 1 and 2 |
| `search_versions` | after DiffCSE Table 9 |
| `TripletSet` | written for opencse (docs/data/development-sets.md) |

`ProbeScores` holds the results of one model, each probe's in a class of its own, because each table
and chart of a report shows another thing: `SplitResult` two correlations of a set, `Transformations`
cosines by kind of rewriting (one `TransformationCosines` each), `Retrieval` the first hits of each
search (`RetrievedText`), and `TripletResult` an accuracy by group. Every number on few rows in them is
an `Estimate`.
"""

from opencse.evaluation.probes.probe_suite import (
    ProbeData,
    ProbeScores,
    load_probe_data,
    run_probes,
)
from opencse.evaluation.probes.probes import (
    ProbeSentences,
    Retrieval,
    Transformations,
    load_probe_sts,
    read_sentences,
)

__all__ = [
    "ProbeData",
    "ProbeScores",
    "ProbeSentences",
    "Retrieval",
    "Transformations",
    "load_probe_data",
    "load_probe_sts",
    "read_sentences",
    "run_probes",
]
