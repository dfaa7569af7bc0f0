"""HTML reports with tables and figures, and the scores on model cards."""

from opencse.reports.outcome import Outcome, compare_outcome
from opencse.reports.page import render, write_report
from opencse.reports.scores import add_scores
from opencse.reports.text import shown

__all__ = ["Outcome", "add_scores", "compare_outcome", "render", "shown", "write_report"]
