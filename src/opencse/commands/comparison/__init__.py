"""Comparison of runs over seeds and over test pairs, with training time."""
