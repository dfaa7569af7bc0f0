"""HTML reports with tables and figures, and the scores on model cards."""
