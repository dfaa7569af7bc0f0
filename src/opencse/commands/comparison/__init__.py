"""Comparison of runs over seeds and over test pairs, with training time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import public_names

if TYPE_CHECKING:
    from opencse.commands.comparison.compare_groups import compare_groups, pair_cosines
    from opencse.commands.comparison.comparison_table import Comparison, GroupRow
    from opencse.commands.comparison.run_groups import Group, RunRecord, find_runs, group_runs, read_run
    from opencse.commands.comparison.seeds import parse_seeds, seed_folders
    from opencse.commands.comparison.statistics import Spread, paired_bootstrap, spread

__all__ = [
    "Comparison",
    "Group",
    "GroupRow",
    "RunRecord",
    "Spread",
    "compare_groups",
    "find_runs",
    "group_runs",
    "pair_cosines",
    "paired_bootstrap",
    "parse_seeds",
    "read_run",
    "seed_folders",
    "spread",
]

__getattr__ = public_names(
    __name__,
    ".compare_groups:compare_groups pair_cosines",
    ".comparison_table:Comparison GroupRow",
    ".run_groups:Group RunRecord find_runs group_runs read_run",
    ".seeds:parse_seeds seed_folders",
    ".statistics:Spread paired_bootstrap spread",
)
