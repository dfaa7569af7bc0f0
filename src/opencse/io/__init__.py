"""Reading and writing: corpora, tables, whole files, the cache and the bundled sample data."""
