"""Reports: tables, figures, and the page that holds both."""

from opencse.reports.page import render, write_report
from opencse.reports.scores import add_scores
from opencse.reports.text import shown

__all__ = ["add_scores", "render", "shown", "write_report"]
