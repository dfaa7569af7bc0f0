"""Views from back-translation, masked language models and tables of candidates."""
