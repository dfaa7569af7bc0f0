"""The tables of the papers as data: which systems, settings and seeds, and what was printed."""

from opencse.commands.reproduction.entries import Entry, System, entry_names, load_entry
from opencse.commands.reproduction.tables import (
    Cell,
    ReproducedTable,
    scores_table,
    split_scores_table,
    splits_table,
)

__all__ = [
    "Cell",
    "Entry",
    "ReproducedTable",
    "System",
    "entry_names",
    "load_entry",
    "scores_table",
    "split_scores_table",
    "splits_table",
]
