"""HTML reports with tables and figures, and the scores on model cards."""

from opencse.reports.page import render, write_report
from opencse.reports.scores import add_scores
from opencse.reports.text import shown

__all__ = ["add_scores", "render", "shown", "write_report"]
