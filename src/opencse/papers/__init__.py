"""The tables of the papers as data: which systems, settings and seeds, and what was printed."""
