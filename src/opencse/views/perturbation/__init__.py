"""Related sentences by chance: words repeated, deleted or masked, or another sentence altogether."""
