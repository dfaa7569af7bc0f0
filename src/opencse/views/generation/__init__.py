"""Related sentences by models and tables: masked and prompted language models, translation, candidates."""
