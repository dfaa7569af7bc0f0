"""HTML reports with tables and figures, and the scores on model cards."""

from opencse.commands.reports.outcome import Outcome, compare_outcome
from opencse.commands.reports.page import render, write_report
from opencse.commands.reports.summary import add_scores
from opencse.commands.reports.text import shown

__all__ = ["Outcome", "add_scores", "compare_outcome", "render", "shown", "write_report"]
