"""Views from models and candidates: back-translation, prompted models, masked language models, tables."""
