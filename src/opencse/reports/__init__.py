"""Reports: tables, figures, and the page that holds both."""

from opencse.reports.page import render, write_report
from opencse.reports.text import shown

__all__ = ["render", "shown", "write_report"]
