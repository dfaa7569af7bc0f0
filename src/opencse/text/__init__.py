"""Text: corpora, languages, and the views that are built from sentences."""
