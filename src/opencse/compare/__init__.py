"""Compare runs honestly: over seeds, over test pairs, with published scores and cost."""

from opencse.compare.comparison import Comparison, Row, compare, pair_cosines
from opencse.compare.run_groups import Group, RunRecord, find_runs, group_runs, read_run
from opencse.compare.seeds import parse_seeds, seed_folders
from opencse.compare.statistics import Difference, Spread, paired_bootstrap, spread, welch

__all__ = [
    "Comparison",
    "Difference",
    "Group",
    "Row",
    "RunRecord",
    "Spread",
    "compare",
    "find_runs",
    "group_runs",
    "pair_cosines",
    "paired_bootstrap",
    "parse_seeds",
    "read_run",
    "seed_folders",
    "spread",
    "welch",
]
