"""Related sentences by grammar: parse, then negate, swap, reorder or cut."""
